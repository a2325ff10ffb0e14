"""`python -m kschedd.conformance PATH...`: `kschedd verify` by itself."""

import sys

from kschedd.conformance.verify import main

if __name__ == "__main__":
    sys.exit(main())
