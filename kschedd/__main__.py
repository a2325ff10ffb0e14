"""`python -m kschedd`: the command line, where the script `kschedd` is not on the path."""

import sys

from kschedd.cli import main

if __name__ == "__main__":
    sys.exit(main())
