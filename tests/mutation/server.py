"""A process that runs the tests of one module again and again, each time in a fork of itself.

The first run reports which modules the tests have imported. Before the second run, the process imports these modules,
except the tests, the tested module, and the modules that cannot be imported without the tested module. A fork then has
to import only the rest. Each line of the input is a limit in seconds of CPU time, because other processes use the CPUs
as well. Tests that wait without an end are stopped later, by the clock. Each line of the output is JSON: the reason for
which the tests failed, an empty string if they passed, and the CPU time in seconds.
"""

import json
import math
import os
import resource
import select
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, Final, Never

_LONGER: Final = 6  # limit by the clock, as a multiple of the limit of CPU time

_OPTIONS = [
    *("-x", "-q", "--no-header", "--tb=no"),
    *("-p", "no:cacheprovider"),
    *("-p", "no:kschedd"),  # kschedd's pytest plugin, which a tree without kschedd cannot load
    *("-p", "no:xdist"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # for plugins of pytest that are already imported
]


class _Without(MetaPathFinder):
    """A finder that makes the import of one module fail."""

    def __init__(self, module: str) -> None:
        self._module = module

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == self._module:
            raise ModuleNotFoundError(f"{name} is imported by each fork", name=name)


def _tests(tests: Sequence[str], limit_s: float, output: int, imported: str) -> Never:
    """Run the tests in this process and exit; write the names of the imported modules to a file."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit_s), resource.RLIM_INFINITY))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code: int = 70
    try:
        import pytest

        sys.argv[1:] = [*_OPTIONS, *tests]
        code = pytest.main(sys.argv[1:])
        Path(imported).write_text("\n".join(sys.modules), encoding="utf-8")
        sys.stdout.flush()
    finally:
        os._exit(code)


def _run(tests: Sequence[str], limit_s: float, imported: str) -> tuple[str, float]:
    """Run the tests in a fork. Return the last line of their output if they fail, otherwise "", and the CPU time."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if not child:
            _tests(tests, limit_s, output.fileno(), imported)
        ended = os.pidfd_open(child)
        is_done = bool(select.select([ended], [], [], _LONGER * limit_s)[0])
        with suppress(ProcessLookupError):  # nothing of its session is left
            os.killpg(child, 9)
        _, status, used = os.wait4(child, 0)
        os.close(ended)
        output.seek(0)
        lines = output.read().decode(errors="replace").split("\n")
    cpu_s = used.ru_utime + used.ru_stime
    if not is_done or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return f"not done after {limit_s:.0f} s of CPU time, or {_LONGER * limit_s:.0f} s", cpu_s
    return "" if status == 0 else next((line for line in reversed(lines) if line), "no output"), cpu_s


def _prepare(names: Iterable[str], module: str) -> None:
    """Import all modules that do not need the tested module."""
    sys.meta_path.insert(0, without := _Without(module))
    for name in names:
        if name.split(".")[0] not in ("tests", "conftest", "__main__"):
            with suppress(ImportError):  # it needs the tested module
                __import__(name)
    sys.meta_path.remove(without)
    if "hypothesis" in sys.modules:  # the first failing example is enough
        from hypothesis import Phase, settings

        settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.generate])
        settings.load_profile("unshrunk")


def main(module: str, tests: Sequence[str]) -> None:
    with tempfile.NamedTemporaryFile() as imported:
        for number, line in enumerate(sys.stdin):
            if number == 1:
                _prepare(Path(imported.name).read_text(encoding="utf-8").split("\n"), module)
            print(json.dumps(_run(tests, float(line), imported.name)), flush=True)


if __name__ == "__main__":
    del sys.path[0]  # the folder of this file
    main(sys.argv[1], sys.argv[2:])
