"""Child processes of the daemon: each child runs a module of kschedd in Python and has one end of a pipe to the daemon.

A child has the daemon's module search path, without the working directory. A child has a separate process group, so
signals from the terminal do not reach it.
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
    """Start Python to run `begin`, with this end of the pipe and the descriptors in `inherits`. Raises OSError."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", begin, str(pipe.fileno()), json.dumps(sys.path)],
        pass_fds=[pipe.fileno(), *inherits],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        process_group=0,
    )
