"""Child processes of the daemon: each runs a module of kschedd and has one end of a pipe to the daemon.

A child has the module search path of the daemon, without the working directory. A child has a separate process group,
so signals from the terminal do not reach it.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Sequence


def beginning(module: str) -> str:
    """Return a Python program that runs the module's `main` with the descriptor of the child's end of the pipe."""
    return f"import sys, json; sys.path[:] = json.loads(sys.argv[2]); from {module} import main; main(int(sys.argv[1]))"


def start(
    begin: str, pipe: socket.socket, *, inherits: Sequence[int] = (), stderr: int | None = None
) -> subprocess.Popen[bytes]:
    """Start Python with the program `begin`; it inherits this end of the pipe and the descriptors in `inherits`.

    Raises OSError.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-c", begin, str(pipe.fileno()), json.dumps(sys.path)],
        pass_fds=[pipe.fileno(), *inherits],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        process_group=0,
    )
