"""The results of modules: stored in a file, so that a long run can be continued, and printed as a table.

A line of the file is the result of one module in JSON, with a digest of the module, its test files and its mutants. A
result whose digest has changed is out of date and is not used.
"""

import hashlib
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import attrs

from tests.mutation.mutants import Mutant
from tests.mutation.trial import ROOT

_BAR = 0.9


@attrs.frozen
class Result:
    """The number of mutants of a module that were tried, and a line for each one that is argued or undetected."""

    module: str  # its path in the tree
    tried: int
    argued: list[str]
    survived: list[str]

    @property
    def detected(self) -> int:
        return self.tried - len(self.argued) - len(self.survived)


@attrs.define(eq=False)
class Results:
    """The undetected mutants of modules, in a file; nothing is stored without a file."""

    _file: Path | None
    _undetected: dict[str, list[int]] = attrs.field(factory=dict, init=False)  # places in the draw, by digest

    def __attrs_post_init__(self) -> None:
        if self._file is not None and self._file.exists():
            for line in self._file.read_text(encoding="utf-8").splitlines():
                _, digest, places = json.loads(line)
                self._undetected[digest] = places

    def of(self, module: str, tests: Sequence[str], drawn: Sequence[Mutant]) -> list[Mutant] | None:
        """Return the undetected mutants; None if no result is stored for the module and the tests as they are now."""
        places = self._undetected.get(_digest(module, tests, drawn))
        return None if places is None else [drawn[place] for place in places]

    def add(self, module: str, tests: Sequence[str], drawn: Sequence[Mutant], undetected: Sequence[Mutant]) -> None:
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as file:
                line = module, _digest(module, tests, drawn), [drawn.index(each) for each in undetected]
                file.write(json.dumps(line) + "\n")


def _digest(module: str, tests: Sequence[str], drawn: Sequence[Mutant]) -> str:
    texts = [(name, (ROOT / name).read_text(encoding="utf-8")) for name in (module, *tests)]
    return hashlib.sha256(repr((texts, list(map(str, drawn)))).encode()).hexdigest()


def table(results: Sequence[Result]) -> str:
    """Return a Markdown table with a row for each package, and the modules of which too few faults were detected."""
    rows = ["| package | modules | mutants | detected | argued | survived | score |", "|---|--:|--:|--:|--:|--:|--:|"]
    for package, of_package in groupby(sorted(results, key=_package), _package):
        rows.append(_row(package, list(of_package)))
    rows.append(_row("all", results))
    weak = [f"{each.module}: {_score([each]):.0%}" for each in results if _score([each]) < _BAR]
    return "\n".join([*rows, "", f"modules under {_BAR:.0%}: {', '.join(weak) or 'none'}"])


def _package(result: Result) -> str:
    return "/".join(Path(result.module).parts[1:-1][:2])


def _row(name: str, results: Sequence[Result]) -> str:
    tried, detected = sum(each.tried for each in results), sum(each.detected for each in results)
    argued, survived = sum(len(each.argued) for each in results), sum(len(each.survived) for each in results)
    return f"| {name} | {len(results)} | {tried} | {detected} | {argued} | {survived} | {_score(results):.0%} |"


def _score(results: Sequence[Result]) -> float:
    """Return the part of the faults, except argued ones, that was detected; 1 if there are none."""
    detected = sum(each.detected for each in results)
    return detected / (detected + survived) if (survived := sum(len(each.survived) for each in results)) else 1.0
