"""Scenario files: commands for a cluster in virtual time with their expected output, in one text.

    # Lines like this one, and empty lines between steps, are comments.
    command arguments
    more lines that the command reads, often manifests
    ----
    expected output, up to an empty line

    expect pod web-0 on zone b

Output that contains empty lines is enclosed in two lines `----` before and after it. A line `...` in the output matches
any number of lines. If `...` is the only line, the command must succeed, and its output is ignored. A line `expect
ASSERTION` is a step without output; if `----` follows, the line is an ordinary command. A run executes the steps from
top to bottom on one cluster. Rewriting replaces expected output by the actual output, and a false assertion by a true
one; the changes can then be reviewed as a diff. The module `commands` defines the commands;
`kschedd.verbs.scheduler.expectations` defines the assertions.

Errors: ScenarioError if a file cannot be parsed into steps, or if an assertion cannot be parsed. A failing command
is not an error: its output shows the failure.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Final

import attrs

from kschedd.api.quantity import shown
from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion
from kschedd.errors import KscheddError
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.simulation.engine import LoggedAttempt
from kschedd.verbs.scheduler.expectations import Finding
from kschedd.verbs.scheduler.expecting import unmet_text

SEPARATOR: Final = "----"
ANYTHING: Final = "..."
EXPECT: Final = "expect"


@attrs.define(eq=False)
class ScenarioError(KscheddError):
    file: str
    line: int  # 1-based; 0: the whole file
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}" if self.line else f"{self.file}: {self.why}"


@attrs.frozen
class Step:
    line: int
    command: str
    input: str
    expected: str
    leading: tuple[str, ...] = ()  # comments and empty lines before the step
    asserts: bool = False  # a line `expect ASSERTION`, whose output is not compared


@attrs.frozen
class Scenario:
    file: str
    steps: tuple[Step, ...]
    trailing: tuple[str, ...] = ()


@attrs.frozen
class Difference:
    """A step whose output differs from the expected output, or an assertion that is false."""

    file: str
    step: Step
    got: str
    finding: Finding | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.step.line}: {self.step.command}\n{self.what}".rstrip("\n")

    @property
    def what(self) -> str:
        if self.finding is not None:
            lines = unmet_text(self.step.command.removeprefix(EXPECT).strip(), self.finding).splitlines()
        else:
            wanted, got = self.step.expected.splitlines(), self.got.splitlines()
            lines = list(unified_diff(wanted, got, "expected", "got", lineterm="", n=2))[2:]
        return "\n".join(f"  {line}" for line in lines)


@attrs.frozen
class StepResult:
    """The result of a step.

    `output` has no trailing line feeds; `finding` is the result of an assertion; `difference`: None if the result is as
    expected.
    """

    step: Step
    output: str
    finding: Finding | None
    difference: Difference | None


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
        if lines[at].split()[0] == EXPECT and lines[at + 1 : at + 2] != [SEPARATOR]:
            steps.append(Step(start + 1, lines[start].strip(), "", "", tuple(leading), asserts=True))
            leading = []
            at += 1
            continue
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
    """Return the expected output that begins at this line, and the number of the line after the output."""
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


def run(
    scenario: Scenario,
    on_decision: OnDecision | None = None,
    version: KubernetesVersion = DEFAULT,
    *,
    only: bool = False,
) -> Iterator[StepResult]:
    """Run the steps of the scenario in order. `on_decision` is called with every attempt. Raises ScenarioError.

    `version`: the default Kubernetes version; with `only`, this version is used even if the file sets another one.
    """
    cluster = ScenarioCluster(Path(scenario.file).parent, on_decision, version=version, only=only)
    for step in scenario.steps:
        yield _asserted(scenario, step, cluster) if step.asserts else _executed(scenario, step, cluster)


def _executed(scenario: Scenario, step: Step, cluster: ScenarioCluster) -> StepResult:
    result = cluster.execute(step.command, step.input)
    if result.unread:
        raise ScenarioError(scenario.file, step.line, _unread(step))
    got = result.text.rstrip("\n")
    good = result.status == 0 if step.expected == ANYTHING else matches(step.expected, got)
    return StepResult(step, got, None, None if good else Difference(scenario.file, step, got))


def _unread(step: Step) -> str:
    """Return the error for a step whose command does not read its input."""
    offset, first = next((n, line) for n, line in enumerate(step.input.splitlines(), 1) if line.strip())
    return (
        f"`{step.command}` reads no input, but line {step.line + offset} follows it: {shown(first)}: "
        f"end the step with a line {SEPARATOR}"
    )


def _asserted(scenario: Scenario, step: Step, cluster: ScenarioCluster) -> StepResult:
    try:
        finding = cluster.expect(step.command)
    except KscheddError as fault:
        raise ScenarioError(scenario.file, step.line, str(fault)) from fault
    return StepResult(step, "", finding, None if finding.met else Difference(scenario.file, step, "", finding))


def matches(expected: str, got: str) -> bool:
    """Return whether the output equals the expected output; a line `...` in the latter matches any number of lines."""
    if ANYTHING not in expected.split("\n"):
        return expected == got
    pattern = "".join(r"(?:.*\n)*?" if line == ANYTHING else re.escape(line) + r"\n" for line in expected.split("\n"))
    return re.fullmatch(pattern, f"{got}\n" if got else "") is not None


def differences(scenario: Scenario, on_decision: OnDecision | None = None) -> list[Difference]:
    return [done.difference for done in run(scenario, on_decision) if done.difference is not None]


def rewritten(scenario: Scenario, on_decision: OnDecision | None = None) -> str:
    """Return the text of the file with the actual output of its steps, and with corrected assertions."""
    return text_of(scenario, list(run(scenario, on_decision)))


def text_of(scenario: Scenario, done: Iterable[StepResult]) -> str:
    """Return the text of the file with the results of its steps."""
    return "".join(_text(scenario, done))


def _text(scenario: Scenario, done: Iterable[StepResult]) -> Iterator[str]:
    for result in done:
        step, got = result.step, result.output
        for line in step.leading:
            yield f"{line}\n"
        if result.finding is not None:
            yield f"{step.command if result.finding.met else result.finding.instead or step.command}\n"
            continue
        if result.difference is None:
            got = step.expected
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
