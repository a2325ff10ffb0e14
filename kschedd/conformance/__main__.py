"""`python -m kschedd.conformance PATH...`: runs `kschedd verify PATH...`."""

import sys

from kschedd.conformance.verify import main

if __name__ == "__main__":
    sys.exit(main())
