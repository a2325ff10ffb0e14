"""The entry point: of the script `kschedd`, and of `python -m kschedd` where the script is not on the path.

Imports next to nothing before `main` runs, so that Ctrl-C while the modules are imported ends in words, too.
"""

import gc
import os
import sys

_INTERRUPTED = 130
_YOUNG = 20_000  # objects made until the collector looks at them: what modules make as they are imported stays


def main() -> int:
    gc.set_threshold(_YOUNG)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads that are not used
    try:
        from kschedd import cli

        return cli.main()
    except KeyboardInterrupt:
        if sys.stderr is not None:  # the caller may have closed it
            sys.stderr.write("interrupted\n")
        return _INTERRUPTED
    finally:
        gc.freeze()  # the process ends: what refers to itself is left as it is, where Python would take it apart


if __name__ == "__main__":
    sys.exit(main())
