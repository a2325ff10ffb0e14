"""Scenario files: commands for a cluster in virtual time with their expected output, in one text.

    # Lines like this one, and empty lines between steps, are comments.
    command arguments
    more lines that the command reads, often manifests
    ----
    expected output, up to an empty line

Output that contains empty lines is enclosed between two lines `----` and two more. A run executes the steps from top
to bottom on one cluster, and passes if every step prints its expected output; rewriting replaces the expected output
with the actual one, to be reviewed as a diff. The module `commands` defines the commands.

Errors: ScenarioError if a file cannot be parsed into steps. A failing command is not an error: its output shows it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import IO, Final

import attrs

from kschedd.errors import KscheddError
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.simulate.engine import LoggedAttempt

SEPARATOR: Final = "----"


@attrs.define(eq=False)
class ScenarioError(KscheddError):
    file: str
    line: int  # 1-based; 0: the file as a whole
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}" if self.line else f"{self.file}: {self.why}"


@attrs.frozen
class Step:
    line: int
    command: str
    input: str
    expected: str
    leading: tuple[str, ...] = ()  # comments and empty lines before it


@attrs.frozen
class Scenario:
    file: str
    steps: tuple[Step, ...]
    trailing: tuple[str, ...] = ()


@attrs.frozen
class Difference:
    """A step whose output differs from the expected one."""

    file: str
    step: Step
    got: str

    def __str__(self) -> str:
        wanted, got = self.step.expected.splitlines(), self.got.splitlines()
        lines = list(unified_diff(wanted, got, "expected", "got", lineterm="", n=2))[2:]
        return "\n".join([f"{self.file}:{self.step.line}: {self.step.command}", *(f"  {line}" for line in lines)])


def parse(text: str, file: str) -> Scenario:
    lines = text.splitlines()
    steps: list[Step] = []
    leading: list[str] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip() or lines[at].startswith("#"):
            leading.append(lines[at])
            at += 1
            continue
        start = at
        while at < len(lines) and lines[at] != SEPARATOR:
            at += 1
        if at == len(lines):
            raise ScenarioError(file, start + 1, f"no line {SEPARATOR} after this command")
        given = "".join(f"{line}\n" for line in lines[start + 1 : at])
        expected, at = _expected(lines, at + 1, file)
        steps.append(Step(start + 1, lines[start].strip(), given, expected, tuple(leading)))
        leading = []
    return Scenario(file, tuple(steps), tuple(leading))


def _expected(lines: Sequence[str], at: int, file: str) -> tuple[str, int]:
    """The expected output that begins at this line, and the number of the line after it."""
    found: list[str] = []
    if at < len(lines) and lines[at] == SEPARATOR:
        first = at
        at += 1
        while lines[at : at + 2] != [SEPARATOR, SEPARATOR]:
            if at >= len(lines):
                raise ScenarioError(
                    file, first + 1, f"output between {SEPARATOR} lines that does not end with two of them"
                )
            found.append(lines[at])
            at += 1
        return "\n".join(found), at + 2
    while at < len(lines) and lines[at].strip():
        found.append(lines[at])
        at += 1
    return "\n".join(found), at


OnDecision = Callable[[LoggedAttempt], None]


def run(scenario: Scenario, on_decision: OnDecision | None = None) -> Iterator[tuple[Step, str]]:
    """Run the scenario: each step with its output. `on_decision` is called with every attempt."""
    cluster = ScenarioCluster(Path(scenario.file).parent, on_decision)
    for step in scenario.steps:
        yield step, cluster.do(step.command, step.input).rstrip("\n")


def differences(scenario: Scenario, on_decision: OnDecision | None = None) -> list[Difference]:
    return [Difference(scenario.file, step, got) for step, got in run(scenario, on_decision) if got != step.expected]


def rewritten(scenario: Scenario, on_decision: OnDecision | None = None) -> str:
    """The file's text with the actual output of its steps."""
    return "".join(_text(scenario, list(run(scenario, on_decision))))


def _text(scenario: Scenario, done: Iterable[tuple[Step, str]]) -> Iterator[str]:
    for step, got in done:
        for line in step.leading:
            yield f"{line}\n"
        yield f"{step.command}\n{step.input}{SEPARATOR}\n"
        if any(not line.strip() for line in got.split("\n")) and got:
            yield f"{SEPARATOR}\n{got}\n{SEPARATOR}\n{SEPARATOR}\n"
        elif got:
            yield f"{got}\n"
    for line in scenario.trailing:
        yield f"{line}\n"


def read(path: Path) -> Scenario:
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as fault:
        raise ScenarioError(str(path), 0, f"cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault


def run_files(paths: Iterable[Path], *, rewrite: bool, out: IO[str], on_decision: OnDecision | None = None) -> int:
    """Run scenario files and report on `out`; returns 1 if the output of any step differs."""
    failed = 0
    for path in paths:
        scenario = read(path)
        if rewrite:
            text = rewritten(scenario, on_decision)
            changed = text != path.read_text(encoding="utf-8")
            path.write_text(text, encoding="utf-8")
            print(f"{path}: {'rewritten' if changed else 'unchanged'}", file=out)
            continue
        wrong = differences(scenario, on_decision)
        failed += bool(wrong)
        print(f"{path}: {len(scenario.steps) - len(wrong)} of {len(scenario.steps)} steps as expected", file=out)
        for difference in wrong:
            print(difference, file=out)
    return 1 if failed else 0
