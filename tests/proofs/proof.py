"""Shared parts of all proofs: the daemon, programs with a time limit, and the table of results."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from tests.command_line_daemons import CommandLineDaemon, command_line_daemon

NODES = 3
_LONGEST_WHY = 160  # characters
_ERROR = re.compile(r"error\b|fail|the .* is invalid|.*no matches for kind", re.IGNORECASE)
_PLACE = re.compile(r' ?error when creating "[^"]*":|error: resource mapping not found for .*(?=no matches)')


@attrs.frozen
class Row:
    """The result of one step of a tool; the step has passed if `why` is empty."""

    tool: str
    version: str
    what: str
    seconds: float
    why: str = ""


@attrs.frozen
class Proof:
    """A tool and its version, and the results so far in `rows`."""

    tool: str
    version: str
    environment: Mapping[str, str]
    rows: list[Row] = attrs.field(factory=list)

    def run(self, what: str, *command: str | Path, folder: Path | None = None, timeout_s: float = 120) -> bool:
        """Run a program, and add a row with its result. Return whether the program exited with 0."""
        began = time.monotonic()
        try:
            done = subprocess.run(
                command, cwd=folder, env=dict(self.environment), capture_output=True, text=True, timeout=timeout_s
            )
            why = "" if done.returncode == 0 else _reason(done.stdout + done.stderr) or "failed"
        except subprocess.TimeoutExpired:
            why = f"not finished after {timeout_s:.0f} s"
        return self.note(what, time.monotonic() - began, why)

    def call(self, what: str, work: Callable[[], object]) -> bool:
        """Call a function, and add a row with its result. Return whether the function raised no exception."""
        began, why = time.monotonic(), ""
        try:
            work()
        except Exception as error:  # the function calls a library of another project, which may raise any exception
            why = _reason(str(error)) or type(error).__name__
        return self.note(what, time.monotonic() - began, why)

    def note(self, what: str, seconds: float, why: str = "") -> bool:
        self.rows.append(Row(self.tool, self.version, what, round(seconds, 1), why[:_LONGEST_WHY]))
        print(f"{what}: {why or 'passed'}", file=sys.stderr, flush=True)
        return not why


def _reason(output: str) -> str:
    """Return the line of a program's output that names the error, or by default the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    named = next((line for line in lines if _ERROR.match(line)), lines[-1] if lines else "")
    return _PLACE.sub("", named)


@contextmanager
def proving(tool: str, version: str, *flags: str) -> Iterator[tuple[Proof, CommandLineDaemon]]:
    """Run a daemon with some nodes, and return a Proof whose programs use the daemon as their cluster."""
    with (
        tempfile.TemporaryDirectory() as folder,
        command_line_daemon(Path(folder), *flags, nodes=NODES) as daemon,
    ):
        environment = {**os.environ, "KUBECONFIG": str(daemon.kubeconfig()), "HOME": folder}
        yield Proof(tool, version, environment), daemon


def required(program: str) -> str:
    """Return the path of a program; exit with an error if the program is missing."""
    found = shutil.which(program)
    if found is None:
        sys.exit(f"error: {program} is required on PATH")
    return found


def options(doc: str | None, *arguments: Callable[[argparse.ArgumentParser], object]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    for add in arguments:
        add(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON as well")
    return parser.parse_args()


def checkout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkout", type=Path, help="a checkout of the project")


def finish(rows: Sequence[Row], file: Path | None) -> int:
    """Print the table and its totals; return the exit status."""
    lines = [("tool", "version", "what", "result", "seconds")]
    lines += [(row.tool, row.version, row.what, row.why or "passed", f"{row.seconds:.1f}") for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True)).rstrip())
    failed = sum(bool(row.why) for row in rows)
    print(f"{len(rows) - failed} of {len(rows)} passed in {sum(row.seconds for row in rows):.0f} s")
    if file is not None:
        file.write_text(json.dumps([attrs.asdict(row) for row in rows], indent=1) + "\n")
    return 1 if failed else 0


def commit_of(folder: Path) -> str:
    """Return the short commit of a checkout, or "" if the folder is not a Git repository."""
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""
