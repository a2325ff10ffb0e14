"""Runs scenario files and reports differences from the expected output.

Each file runs on a cluster of its own, so files may run concurrently in several processes. The reports do not depend on
concurrency, and are in the order of the given files. The files of a folder are sorted by name.

`run_file` never raises an error because of a file's content: if the file cannot be read or parsed, `fault` contains the
error.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Final

import attrs

from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion
from kschedd.errors import KscheddError
from kschedd.scenarios.file import Difference, OnDecision, ScenarioError, StepResult, read, run, text_of

SUFFIX: Final = ".txt"
PASSED, FAILED, BAD_INPUT = 0, 1, 2


@attrs.frozen
class FileResult:
    """The result of a file.

    `steps`: the steps that have run. `fault`: the reason why not all steps have run. `rewrote`: whether the file was
    changed.
    """

    file: str
    steps: tuple[StepResult, ...]
    seconds: float
    fault: str = ""
    rewrote: bool = False

    @property
    def differences(self) -> list[Difference]:
        return [step.difference for step in self.steps if step.difference is not None]


@attrs.define(eq=False)
class NoScenariosError(KscheddError):
    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and the files of the folders; each file once. Raises NoScenariosError."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise NoScenariosError(str(path), "there is no such file or folder")
        if not path.is_dir() and not path.is_file():
            raise NoScenariosError(str(path), "neither a file nor a folder; a pipe may never end")
        within = sorted(each for each in path.rglob(f"*{SUFFIX}") if each.is_file()) if path.is_dir() else [path]
        if not within:
            raise NoScenariosError(str(path), f"no scenario in this folder: their names end in {SUFFIX}")
        found.update(dict.fromkeys(within))
    return list(found)


def run_file(
    path: Path,
    *,
    rewrite: bool = False,
    on_decision: OnDecision | None = None,
    version: KubernetesVersion = DEFAULT,
    clock: Callable[[], float] = time.perf_counter,
) -> FileResult:
    began = clock()
    steps: list[StepResult] = []
    rewrote, fault = False, ""
    try:
        scenario = read(path)
        for step in run(scenario, on_decision, version):
            steps.append(step)
        if rewrite:
            rewrote = _write(path, text_of(scenario, steps))
    except ScenarioError as wrong:
        fault = str(wrong)
    return FileResult(str(path), tuple(steps), clock() - began, fault, rewrote)


def _write(path: Path, text: str) -> bool:
    """Write the file if its text changes; return whether it was written."""
    try:
        if text == path.read_text(encoding="utf-8"):
            return False
        path.write_text(text, encoding="utf-8")
    except OSError as wrong:
        raise ScenarioError(str(path), 0, f"cannot be written: {wrong.strerror or wrong}") from wrong
    return True


def run_each(
    paths: Sequence[Path], *, jobs: int, rewrite: bool, version: KubernetesVersion = DEFAULT
) -> Iterator[FileResult]:
    """Yield the results in the order of the paths, each result as soon as it and all earlier results are available."""
    do = partial(run_file, rewrite=rewrite, version=version)
    if jobs < 2 or len(paths) < 2:
        yield from map(do, paths)
        return
    with ProcessPoolExecutor(min(jobs, len(paths)), multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(do, paths)


def report(result: FileResult, write: Callable[[str], object]) -> int:
    """Write the report of a file; return the file's exit status."""
    differences = result.differences
    if result.rewrote:  # after rewriting, all steps are as expected, except assertions without a replacement
        differences = [one for one in differences if one.finding is not None and not one.finding.instead]
    good = len(result.steps) - len(differences)
    if result.fault:
        write(f"error: {result.fault}\n")
    elif result.rewrote:
        write(f"{result.file}: rewritten\n")
    else:
        write(f"{result.file}: {good} of {len(result.steps)} steps as expected\n")
    for difference in differences:
        write(f"{difference}\n")
    if result.fault:
        return BAD_INPUT
    return FAILED if differences else PASSED


def run_files(
    paths: Iterable[Path],
    *,
    rewrite: bool,
    out: IO[str],
    on_decision: OnDecision | None = None,
    version: KubernetesVersion = DEFAULT,
) -> int:
    """Run scenario files one by one and report on `out`; return the highest exit status."""
    results = (run_file(path, rewrite=rewrite, on_decision=on_decision, version=version) for path in paths)
    return max((report(result, out.write) for result in results), default=PASSED)
