"""`python -m kschedd.simulate`: the same as `kschedd simulate`."""

import argparse
import sys

from kschedd.simulate.cli import add_arguments, main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m kschedd.simulate")
    add_arguments(parser)
    sys.exit(main(parser.parse_args()))
