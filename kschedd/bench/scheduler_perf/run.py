"""`kschedd bench --config FILE`: runs the workloads of kube-scheduler's own benchmark files.

Each workload runs in a separate process. `--case` and `--workload` select workloads by name; otherwise the filter
selects them by label (`performance`, as upstream). A workload that cannot be run is reported with the reason, and the
other workloads are run. Exit status: 0 for success; 1 if a threshold was missed or a workload could not be run; 2 if
the file or the options are invalid.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.bench.scheduler_perf.cases import PerfCase, PerfConfigError, PerfWorkload, enabled, read_file
from kschedd.bench.scheduler_perf.perfdata import DataItem, as_json, missed_thresholds
from kschedd.bench.scheduler_perf.templates import TemplateFolder, read_text
from kschedd.config.loading.load import default_config, load_config
from kschedd.config.model import Config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.versions.feature_gates import defaults
from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion, kube_version
from kschedd.errors import KscheddError

DEFAULT_FILTER: Final = "performance"

_SHOWN: Final = ("Average", "Perc50", "Perc90", "Perc99")
DONE, MISSED, NOT_RUN = "ok", "threshold missed", "not run"


@attrs.define(eq=False)
class SelectionError(KscheddError):
    """The error for options that select no workload of the file."""

    why: str


@attrs.frozen
class WorkloadResult:
    case: str
    workload: str
    items: list[DataItem]
    outcome: str
    messages: tuple[str, ...]  # notes, missed thresholds, or the reason why the workload was not run
    limit: float = 0.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("kube-scheduler's benchmark files (scheduler_perf)")
    group.add_argument("--config", type=Path, metavar="FILE", help="run the workloads of this performance-config.yaml")
    group.add_argument("--case", action="append", metavar="NAME", help="with --config: only this test case; repeatable")
    group.add_argument(
        "--label-filter",
        metavar="LABELS",
        help=f"with --config: required labels, and excluded ones as -LABEL; default: {DEFAULT_FILTER}, or none with "
        "--case or --workload",
    )
    group.add_argument("--topic", default="", metavar="NAME", help="with --config: topic of the thresholds to use")
    group.add_argument(
        "--data-items-dir",
        type=Path,
        metavar="DIR",
        help="with --config: write the results to this folder in the format of perfdash",
    )
    group.add_argument("--list", action="store_true", help="with --config: list the workloads without running them")


def main(options: argparse.Namespace) -> int:
    try:
        version = kube_version(options.kube_version or DEFAULT.name).name
        chosen = choose(read_file(options.config), options.case, options.workload, options.label_filter)
    except KscheddError as fault:
        print(f"kschedd bench: {fault}", file=sys.stderr)
        return 2
    if options.list:
        print(
            _table([("CASE", "WORKLOAD", "LABELS", "THRESHOLD"), *(_listed(*each, options.topic) for each in chosen)])
        )
        return 0
    results = []
    for number, (case, workload) in enumerate(chosen):
        print(f"[{number + 1}/{len(chosen)}] {case.name}/{workload.name}", file=sys.stderr, flush=True)
        result = _run(options, version, case, workload)
        for line in result.messages:
            print(f"  {line}", file=sys.stderr, flush=True)
        results.append(result)
    items = [item for result in results for item in result.items]
    if options.data_items_dir is not None:
        try:
            written = _write(options.data_items_dir, options.topic, as_json(items))
        except OSError as fault:
            print(f"kschedd bench: {options.data_items_dir}: cannot be written: {fault.strerror}", file=sys.stderr)
            return 2
        print(f"written: {written}", file=sys.stderr)
    print(as_json(items) if options.output == "json" else table(results))
    return 0 if all(result.outcome == DONE for result in results) else 1


def choose(
    cases: Sequence[PerfCase], case_names: Sequence[str] | None, names: Sequence[str] | None, label_filter: str | None
) -> list[tuple[PerfCase, PerfWorkload]]:
    """Return the selected workloads, in file order. Raises SelectionError if no workload is selected."""
    for wanted, there, what in (
        (case_names, {case.name for case in cases}, "case"),
        (names, {workload.name for case in cases for workload in case.workloads}, "workload"),
    ):
        for name in wanted or ():
            if name not in there:
                raise SelectionError(f"there is no {what} {name!r}; there are: {', '.join(sorted(there))}")
    if label_filter is None:
        label_filter = "" if case_names or names else DEFAULT_FILTER
    chosen = [
        (case, workload)
        for case in cases
        for workload in case.workloads
        if (not case_names or case.name in case_names)
        and (not names or workload.name in names)
        and enabled(label_filter, (*case.labels, *workload.labels))
    ]
    if not chosen:
        raise SelectionError(f"no workload matches the label filter {label_filter!r} and the names")
    return chosen


def _run(options: argparse.Namespace, version: str, case: PerfCase, workload: PerfWorkload) -> WorkloadResult:
    result = partial(WorkloadResult, case.name, workload.name)
    if case.faults:
        return result([], NOT_RUN, case.faults)
    given = json.dumps(
        {
            "config": str(options.config),
            "case": case.name,
            "workload": workload.name,
            "seed": options.seed,
            "version": version,
            "own_time": options.own_time,
        }
    )
    command = [sys.executable, "-m", "kschedd.bench.scheduler_perf.run", given]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode:
        return result([], NOT_RUN, (f"its process ended with status {ended.returncode}; its output is above",))
    answer = json.loads(ended.stdout.splitlines()[-1])
    if "refused" in answer:
        return result([], NOT_RUN, tuple(answer["refused"].splitlines()))
    items = [DataItem(**item) for item in answer["items"]]
    limit = workload.limit(options.topic)
    missed = missed_thresholds(items, limit, case.selector(workload))
    return result(items, MISSED if missed else DONE, (*answer["notes"], *missed), limit)


def _write(folder: Path, topic: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    path = folder / f"BenchmarkPerfScheduling_benchmark_{topic}_{stamp}.json"
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _listed(case: PerfCase, workload: PerfWorkload, topic: str) -> tuple[str, ...]:
    labels = ",".join((*case.labels, *workload.labels)) or "-"
    limit = workload.limit(topic)
    return case.name, workload.name, labels, "not supported" if case.faults else f"{limit:g}" if limit else "-"


def table(results: Sequence[WorkloadResult]) -> str:
    rows: list[Sequence[str]] = [
        ("CASE", "WORKLOAD", "PODS/S", "P50", "P90", "P99", "ATTEMPT MS", "THRESHOLD", "OUTCOME")
    ]
    for result in results:
        limit = f"{result.limit:g}" if result.limit else "-"
        found = [item for item in result.items if item.labels["Metric"] == "SchedulingThroughput"]
        if not found:
            rows.append((result.case, result.workload, *("-",) * 5, limit, result.outcome))
        for item in found:
            figures = (f"{item.data[key]:,.0f}" if key in item.data else "-" for key in _SHOWN)
            attempt = _attempt_ms(result.items, item.labels["Name"])
            rows.append((result.case, result.workload, *figures, attempt, limit, result.outcome))
    return _table(rows)


def _attempt_ms(items: Sequence[DataItem], name: str) -> str:
    for item in items:
        labels = item.labels
        if labels["Name"] == name and labels["Metric"] == "scheduler_scheduling_attempt_duration_seconds":
            if labels.get("result", "scheduled") == "scheduled":
                return f"{item.data['Average']:.3f}"
    return "-"


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


# -- in the child process ---------------------------------------------------------------------------------------


def _measure(given: dict[str, Any]) -> dict[str, Any]:
    import trio

    from kschedd.bench.own_time import own_time
    from kschedd.bench.scheduler_perf.executor import run_workload
    from kschedd.bench.scheduler_perf.run import configuration

    path = Path(given["config"])
    case = next(case for case in read_file(path) if case.name == given["case"])
    workload = next(each for each in case.workloads if each.name == given["workload"])
    try:
        config, notes = configuration(case, workload, path, kube_version(given["version"]))
        with own_time() if given["own_time"] else nullcontext(time.perf_counter) as timer:
            results = trio.run(
                partial(run_workload, case, workload, config, path, given["seed"], _report_to_stderr(), timer)
            )
    except KscheddError as fault:
        return {"refused": str(fault)}
    if given["own_time"]:
        notes.append("own time: without that in which others had the processor")
    for each in results:
        if each.sample_s < 1:
            notes.append(
                f"{each.pods:,} pods took {each.took_s:.3f} s: throughput is sampled each {each.sample_s:g} s, "
                "not each second as upstream"
            )
    return {"items": [attrs.asdict(item) for each in results for item in each.items], "notes": notes}


def _report_to_stderr() -> Any:
    if not sys.stderr.isatty():
        return lambda what: None
    return lambda what: print(f"\r\x1b[K  {what}\r", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        print(json.dumps(_measure(json.loads(sys.argv[1]))))
    except PerfConfigError as fault:
        sys.exit(f"kschedd bench: {fault}")


def configuration(
    case: PerfCase, workload: PerfWorkload, source: Path, version: KubernetesVersion
) -> tuple[Config, list[str]]:
    """Return the configuration of a workload, with notes on settings that have no effect. Raises PerfConfigError.

    A feature gate has no effect if this scheduler does not have it, or if it is locked.
    """
    known = version.gates
    gates, notes = {}, []
    for name, state in {**case.feature_gates, **workload.feature_gates}.items():
        gate = known.get(name)
        if gate is None:
            notes.append(f"feature gate {name}: there is none in {version.name}; it has no effect")
        elif gate.locked and state != gate.default:
            notes.append(f"feature gate {name}: it cannot be {str(state).lower()} in {version.name}; it has no effect")
        elif not gate.what and state != defaults(known)[name]:
            notes.append(f"feature gate {name}: nothing here depends on it")
        else:
            gates[name] = state
    try:
        if not case.scheduler_config_path:
            return default_config(version=version, feature_gates=gates), notes
        path = TemplateFolder(source).path(case.scheduler_config_path)
        return load_config(read_text(path), str(path), version=version, feature_gates=gates), notes
    except ConfigErrors as wrong:
        raise PerfConfigError(tuple(str(wrong).splitlines())) from None
