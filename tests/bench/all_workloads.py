"""Benchmark of every workload, at all sizes and in both modes, with one result file for later comparisons.

    python tests/bench/all_workloads.py RESULT.json                everything; about half an hour on 2 cores
    python tests/bench/all_workloads.py RESULT.json --quick         500 nodes only
    python tests/bench/all_workloads.py RESULT.json --compare EARLIER.json

No other program should run meanwhile. Pytest does not collect this file.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

KSCHEDD = [str(Path(sys.executable).with_name("kschedd")), "bench", "-o", "json"]

MODES = ["--mode", "both"]
FULL: list[list[str]] = [
    ["--nodes", "5000", *MODES],
    ["--nodes", "15000", *MODES, "--workload", "SchedulingBasic,Heterogeneous,SchedulingDaemonset"],
    ["--nodes", "5000", "--mode", "algo", "--percentage", "100", "--workload", "SchedulingBasic,TopologySpreading"],
    ["--nodes", "5000", "--mode", "algo", "--percentage", "100", "--workload", "SchedulingPodAffinity,Heterogeneous"],
    ["--nodes", "5000", "--mode", "e2e", "--offered-rate", "100", "--workload", "SchedulingBasic"],
    ["--nodes", "50000", "--nodes", "100000", "--mode", "algo", "--workload", "SchedulingBasic,TopologySpreading"],
]
QUICK: list[list[str]] = [["--nodes", "500", *MODES]]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run every benchmark workload and store the figures.")
    parser.add_argument("result", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--compare", type=Path)
    options = parser.parse_args()
    rows: list[object] = []
    for arguments in QUICK + ([] if options.quick else FULL):
        compare = ["--compare", str(options.compare)] if options.compare else []
        ended = subprocess.run([*KSCHEDD, *arguments, *compare], stdout=subprocess.PIPE, text=True, check=False)
        if ended.returncode:
            return ended.returncode
        rows += json.loads(ended.stdout)["results"]
        options.result.write_text(json.dumps({"results": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
