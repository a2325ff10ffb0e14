"""The entry point of the script `kschedd`, and of `python -m kschedd` if the script is not on the path.

Almost nothing is imported before `main` runs, so that Ctrl-C during the imports also ends with a message.
"""

import gc
import os
import sys

_INTERRUPTED = 130
_YOUNG = 20_000  # number of created objects that starts a collection; most objects that imports create are long-lived


def main() -> int:
    gc.set_threshold(_YOUNG)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would otherwise start threads that are not used
    try:
        from kschedd import cli

        return cli.main()
    except KeyboardInterrupt:
        if sys.stderr is not None:  # the caller may have closed standard error
            sys.stderr.write("interrupted\n")
        return _INTERRUPTED
    finally:
        gc.freeze()  # the process ends, so the collector need not free the remaining reference cycles


if __name__ == "__main__":
    sys.exit(main())
