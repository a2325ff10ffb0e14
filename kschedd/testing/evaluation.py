"""Evaluation of a plugin with a suite of workloads: the fitness function for searches over programs.

    result = evaluate("plugin.py", suite="suite.yaml", seeds=10)
    print(result.combined_score, result.metrics, result.artifacts)

The plugin runs in a separate process, with limits on time, memory, processes and output. If it fails or exceeds a
limit, `valid` is False in the result and `error` is the reason. All processes that it started are killed at the end.
The separate process is not a sandbox: the program can use the network, and read and write the user's files.
"""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.answers import AnswerError, read
from kschedd.api.text.documents import read_documents
from kschedd.errors import KscheddError
from kschedd.input_files import open_input
from kschedd.sdk.records import Records

#: The metrics of a run; the result contains the mean of each metric over all runs.
METRICS: Final = ("placed", "cpu_used", "memory_used", "nodes_used", "imbalance", "seconds")
DEFAULT_SUITE: Final[Mapping[str, Any]] = {
    "cases": [
        {"name": "even", "nodes": {"count": 20}, "pods": {"count": 60, "cpu": ["250m", "500m", "1"]}},
        {
            "name": "full",
            "nodes": {"count": 10, "cpu": "8", "memory": "16Gi"},
            "pods": {"count": 60, "cpu": ["500m", "1", "4"], "memory": ["1Gi", "4Gi"]},
        },
    ]
}

_MARK: Final = "KSCHEDD_EVALUATION"  # an environment variable of the worker and of all processes that it starts
_ROUNDS: Final = 100  # maximum number of attempts to kill the processes, because they may start others in the meantime
_MEBI: Final = 1 << 20
_LARGEST_ANSWER: Final = 64 << 20  # bytes
_MOST_OUTPUT: Final = 1 << 20  # maximum number of bytes of standard output and standard error that are read


@attrs.define(eq=False)
class SuiteError(KscheddError):
    """The suite is invalid."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


@attrs.frozen(kw_only=True)
class EvaluationRun:
    """The result of one case with one seed. Shares are from 0 to 1.

    * `placed`: the share of the pods that were scheduled to a node.
    * `cpu_used`, `memory_used`: the requested share of the CPU and memory of the nodes in use.
    * `nodes_used`: the share of the nodes with pods.
    * `imbalance`: the standard deviation of the nodes' requested CPU shares.
    * `seconds`: of CPU.
    """

    case: str
    seed: int
    placed: float
    cpu_used: float
    memory_used: float
    nodes_used: float
    imbalance: float
    seconds: float


@attrs.frozen(kw_only=True)
class _Answer:
    """What the worker writes. The program under evaluation may have forged this answer."""

    error: str
    runs: Sequence[EvaluationRun]
    artifacts: Mapping[str, str]


@attrs.frozen(kw_only=True)
class PluginEvaluation:
    """The result: the mean of each metric, their weighted sum, and texts that help to improve the program.

    `valid`: False if the program could not be evaluated; `error` is then the reason, and `combined_score` is 0.
    `artifacts`: `artifacts` contains `broken_rules`, the `messages` of pods without a node, and the program's `output`;
    empty parts are absent.
    """

    valid: bool
    combined_score: float
    metrics: Mapping[str, float]
    artifacts: Mapping[str, str]
    runs: Records[EvaluationRun]
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values that can be encoded in JSON."""
        return {**attrs.asdict(self, filter=lambda field, _: field.name != "runs"), "runs": self.runs.to_dicts()}


def evaluate(
    plugin: str | Path,
    suite: str | Path | Mapping[str, Any] | None = None,
    *,
    seeds: int = 10,
    rules: bool = True,
    time_limit_s: float = 120.0,
    memory_limit_mib: int = 2048,
) -> PluginEvaluation:
    """Evaluate the plugins of a Python file. Raises SuiteError if the suite cannot be read.

    `suite`: a file or a map, as docs/EVALUATE.md describes; None: a small suite that is part of kschedd. `rules`: check
    the rules of the plugin interface before the evaluation. The limits apply to all runs together.
    """
    cases = read_suite(suite)
    task = {"plugin": str(Path(plugin).resolve()), "suite": cases, "seeds": seeds, "rules": rules}
    limits = {"seconds": time_limit_s, "bytes": memory_limit_mib * _MEBI}
    answer, output, fault = _in_process(json.dumps({**task, "limits": limits}), time_limit_s)
    artifacts = {"output": output} if output else {}
    if answer is None:
        return _invalid(fault, artifacts)
    artifacts |= {_printable(name): _printable(text) for name, text in answer.artifacts.items()}
    if answer.error:
        return _invalid(_printable(answer.error), artifacts)
    runs = Records(EvaluationRun, answer.runs)
    metrics = {name: sum(getattr(run, name) for run in runs) / len(runs) for name in METRICS}
    weights = cases.get("weights") or {"placed": 1.0}
    score = sum(weight * metrics[name] for name, weight in weights.items())
    if not math.isfinite(score):
        return _invalid("the process wrote a result that is no number", artifacts)
    return PluginEvaluation(valid=True, combined_score=score, metrics=metrics, artifacts=artifacts, runs=runs)


def read_suite(suite: str | Path | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a suite in which all paths are absolute. Raises SuiteError."""
    if suite is None:
        return dict(DEFAULT_SUITE)
    where, folder = "suite", Path()
    given: Any = suite
    if not isinstance(suite, Mapping):
        where, folder = str(suite), Path(suite).resolve().parent
        try:
            documents = list(read_documents(Path(suite).read_text(encoding="utf-8")))
        except (OSError, ValueError) as fault:
            raise SuiteError(where, f"cannot be read: {fault}") from fault
        faults = [fault for document in documents for fault in document.faults]
        if faults:
            raise SuiteError(f"{where}:{faults[0].line}", f"cannot be read: {faults[0].why}")
        given = documents[0].value if len(documents) == 1 else None
    if not isinstance(given, Mapping) or not isinstance(given.get("cases"), Sequence) or not given["cases"]:
        raise SuiteError(where, "a map with a list `cases` is required")
    weights = given.get("weights") or {}
    if not isinstance(weights, Mapping) or any(name not in METRICS for name in weights):
        raise SuiteError(where, f"weights: a map of numbers by metric is required (metrics: {', '.join(METRICS)})")
    if any(not isinstance(weight, int | float) or isinstance(weight, bool) for weight in weights.values()):
        raise SuiteError(where, "weights: numbers are required")
    return {**given, "cases": [_case(where, number, case, folder) for number, case in enumerate(given["cases"])]}


def _case(where: str, number: int, case: Any, folder: Path) -> dict[str, Any]:
    at = f"{where}: cases[{number}]"
    if not isinstance(case, Mapping):
        raise SuiteError(at, "a map is required")
    known = {"name", "nodes", "pods", "from", "files", "until", "version"}
    unknown = sorted(str(key) for key in case if key not in known)
    if unknown:
        raise SuiteError(at, f'unknown field "{unknown[0]}" (known: {", ".join(sorted(known))})')
    if not ("from" in case or "nodes" in case or "files" in case):
        raise SuiteError(at, "one of nodes, files and from is required")
    found = {"name": f"case-{number}", **case}
    for key in ("from", "files"):
        if key in case:
            paths = [case[key]] if isinstance(case[key], str) else case[key]
            if not isinstance(paths, Sequence) or not all(isinstance(path, str) for path in paths):
                raise SuiteError(f"{at}.{key}", "a path or a list of paths is required")
            found[key] = [str(folder / path) for path in paths]
    for key in ("nodes", "pods"):
        count = case[key].get("count") if isinstance(case.get(key), Mapping) else 1
        if key in case and (not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= 100_000):
            raise SuiteError(f"{at}.{key}", "a map with a count from 1 to 100000 is required")
    return found


def _invalid(error: str, artifacts: Mapping[str, str]) -> PluginEvaluation:
    return PluginEvaluation(
        valid=False, combined_score=0.0, metrics={}, artifacts=artifacts, runs=Records(EvaluationRun), error=error
    )


def _printable(text: str) -> str:
    """Return a text of the program; characters that cannot be encoded are replaced."""
    return text.encode("utf-8", "backslashreplace").decode()


def _in_process(task: str, time_limit_s: float) -> tuple[_Answer | None, str, str]:
    """Run the worker; return its answer, the program's output, and the reason if there is no answer."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="kschedd-evaluate-", ignore_cleanup_errors=True) as folder:
        answer = Path(folder) / "answer.json"
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
            given.write(task.encode())
            given.seek(0)
            worker = subprocess.Popen(
                [sys.executable, "-m", "kschedd.testing.evaluation_worker", str(answer)],
                stdin=given,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, _MARK: mark},
                start_new_session=True,
            )
            fault = ""
            try:
                worker.wait(time_limit_s)
            except subprocess.TimeoutExpired:
                fault = f"time limit exceeded: {time_limit_s:g} s"
            finally:
                _end(worker, mark)
            output.seek(0)
            text = output.read(_MOST_OUTPUT).decode("utf-8", "replace")
        if fault:
            return None, text, fault
        try:
            with open_input(answer, pipes=False) as file:  # the program may have replaced the file with a device
                found = read(_Answer, json.loads(file.read(_LARGEST_ANSWER)))
        except (OSError, ValueError, RecursionError):
            return None, text, f"the process ended without a result ({_ending(worker.returncode)})"
        except AnswerError as wrong:
            return None, text, f"the process wrote something else than a result ({wrong})"
        if not found.error and not found.runs:
            return None, text, "the process wrote a result without a run"
        return found, text, ""


def _end(worker: "subprocess.Popen[bytes]", mark: str) -> None:
    """Kill the worker and all processes that it started, including processes in other sessions."""
    try:
        os.killpg(worker.pid, signal.SIGKILL)
    except ProcessLookupError:
        worker.poll()
    worker.wait()
    for _ in range(_ROUNDS):
        if not (left := _marked(mark)):
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _marked(mark: str) -> list[int]:
    """Return the running processes whose environment contains this mark (on Linux)."""
    wanted, found = f"{_MARK}={mark}".encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # the process has ended, or belongs to another user
            if wanted in file.read_bytes():
                found.append(int(file.parent.name))
    return found


def _ending(status: int) -> str:
    if status < 0:
        return f"signal {signal.Signals(-status).name}"
    return f"exit status {status}"
