"""Processes of our own: Python that runs a module of ours at the other end of a pipe.

It has the daemon's search path, and not the working directory besides, whose modules are none of ours. A signal from
the terminal does not reach it: it is a process group of its own.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Sequence


def beginning(module: str) -> str:
    """Return the Python program text that runs the module's `main` with the descriptor of its end of the pipe."""
    return f"import sys, json; sys.path[:] = json.loads(sys.argv[2]); from {module} import main; main(int(sys.argv[1]))"


def start(
    begin: str, pipe: socket.socket, *, inherits: Sequence[int] = (), stderr: int | None = None
) -> subprocess.Popen[bytes]:
    """Start Python with `begin` and this end of the pipe, and the descriptors of `inherits` besides. Raises OSError."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", begin, str(pipe.fileno()), json.dumps(sys.path)],
        pass_fds=[pipe.fileno(), *inherits],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        process_group=0,
    )
