"""Ten upgrade comparisons: `python -m tests.bench.comparisons FOLDER [--only NUMBER,...]`.

Clusters and workloads (`comparison_inputs`) are written into FOLDER if they are missing. Each comparison runs `kschedd
compare --kube-version ...`, and stores its answer there as JSON and Markdown. The command prints a table in Markdown:
the number of pods that differ, the differences, the rules that cause them, and the CPU time and memory of the command.
Comparisons with missing input are skipped with a message.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Final

import attrs

from tests.bench import comparison_inputs as inputs

_NEW_PODS: Final = 2_000
_TRACE_PODS: Final = 1_000
_PROFILES: Final = inputs.EXAMPLES.parent / "profiles"


@attrs.frozen
class Comparison:
    """A comparison; `flags` writes its inputs into a folder, and returns the flags with their paths."""

    what: str
    versions: str
    flags: Callable[[Path], list[str]]


def _once(folder: Path, name: str, make: Callable[[Path], Path]) -> str:
    path = folder / name
    return str(path if path.exists() else make(path))


def _demo(folder: Path) -> list[str]:
    return ["--from", _once(folder, "demo.json", lambda path: inputs.settled(path, inputs.EXAMPLES / "demo"))]


def _two_zones(folder: Path) -> str:
    nodes = inputs.EXAMPLES / "clusters" / "two-zones.yaml"
    return _once(folder, "two-zones.json", lambda path: inputs.settled(path, nodes))


def _shop(folder: Path) -> list[str]:
    files = (inputs.EXAMPLES / "clusters" / "two-zones.yaml", inputs.boutique())
    return ["--from", _once(folder, "shop.json", lambda path: inputs.settled(path, *files))]


def _shop_applied(folder: Path) -> list[str]:
    return ["--from", _two_zones(folder), "-f", str(inputs.boutique())]


def _gpus(folder: Path) -> list[str]:
    return ["--from", _once(folder, "gpus.json", inputs.gpus)]


def _gpus_packed(folder: Path) -> list[str]:
    return [*_gpus(folder), "--config", str(_PROFILES / "bin-packing.yaml")]


def _trace_applied(folder: Path) -> list[str]:
    def pods(path: Path) -> Path:
        return inputs.workload(path, (each.raw for each in islice(inputs.gpu_trace().pods, _TRACE_PODS)))

    empty = _once(folder, "gpus-empty.json", lambda path: inputs.gpus(path, day=-1))
    return ["--from", empty, "-f", _once(folder, "gpu-pods.json", pods)]


def _large(folder: Path) -> list[str]:
    return ["--from", _once(folder, "large.json", inputs.large)]


def _large_applied(folder: Path) -> list[str]:
    new = _once(folder, "new.json", lambda path: inputs.workload(path, inputs.large_pods("new", _NEW_PODS)))
    return [*_large(folder), "-f", new]


COMPARISONS: Final = (
    Comparison("examples/demo", "1.34,1.36", _demo),
    Comparison("examples/demo", "1.34.1,1.36", _demo),
    Comparison("Online Boutique, running on two zones", "1.34,1.36", _shop),
    Comparison("Online Boutique, as a workload on two zones", "1.34,1.36", _shop_applied),
    Comparison("GPU trace (Alibaba 2023), as it stands on day 145", "1.34,1.36", _gpus),
    Comparison("the same, with profiles/bin-packing.yaml", "1.34,1.36", _gpus_packed),
    Comparison(f"GPU trace, its first {_TRACE_PODS:,} pods as a workload", "1.34,1.36", _trace_applied),
    Comparison("5,000 nodes, 50,000 pods of 250 templates", "1.34,1.36", _large),
    Comparison("the same", "1.34.1,1.34", _large),
    Comparison(f"the same, {_NEW_PODS:,} more pods as a workload", "1.34,1.36", _large_applied),
)


def compared(number: int, comparison: Comparison, folder: Path) -> str:
    """Return a row of the table, and write the answer to a file in `folder`."""
    flags = comparison.flags(folder)
    answer = folder / f"comparison-{number:02}.json"
    command = [sys.executable, "-m", "kschedd", "compare", "--kube-version", comparison.versions, *flags]
    with answer.open("w") as file:
        child = subprocess.Popen([*command, "-o", "json"], stdout=file)
        _, status, used = os.wait4(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1):
        raise SystemExit(f"comparison {number}: {' '.join(command)} ended with {code}")
    found = json.loads(answer.read_text())
    (folder / f"comparison-{number:02}.md").write_text(_as_markdown(found))
    return _row(number, comparison, found, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def _as_markdown(found: dict[str, Any]) -> str:
    from kschedd.printing.reports.comparison import as_markdown

    return as_markdown(found, 100)


def _row(number: int, comparison: Comparison, found: dict[str, Any], cpu_s: float, mib: float) -> str:
    counts = {name: 0 for name in ("moved", "placed", "pending", "message")}
    for pod in found["different"]:
        counts[pod["change"]] += 1
    rules = ", ".join(f"`{rule['rule'] or 'several'}`" for rule in found["rules"])
    cells = (
        str(number),
        comparison.what,
        comparison.versions.replace(",", ", "),
        f"{found['pods']:,}",
        f"{counts['moved']:,}",
        f"{counts['placed']:,} / {counts['pending']:,}",
        f"{counts['message']:,}",
        rules,
        f"{cpu_s:.0f} s",
        f"{mib:,.0f} MiB",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default="", metavar="NUMBER,...", help="these of them")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    only = {int(text) for text in options.only.split(",") if text}
    print(f"load {os.getloadavg()[0]:.0f}\n")
    print(
        "| | cluster | versions | pods | placed elsewhere | placed / pending now | with another message | rule |"
        " CPU | memory |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for number, comparison in enumerate(COMPARISONS, 1):
        if only and number not in only:
            continue
        try:
            print(compared(number, comparison, options.folder), flush=True)
        except inputs.AbsentInput as absent:
            print(f"comparison {number} is left out: {absent}", file=sys.stderr)


if __name__ == "__main__":
    main()
