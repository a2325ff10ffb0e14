"""Comparison of six placement policies by the share of GPUs they allocate, on a recorded workload.

    python examples/scripts/gpu_policies.py --nodes node_list_all.csv --pods pod_list_default.csv

For each policy and seed, `kschedd simulate --fill` lets the trace's pods arrive in random order until 130 % of the GPUs
have been asked for; nobody leaves. What counts is the share of GPUs that is given out then. The policies are those of
examples/plugins/gpu_share.py, from "Beware of Fragmentation" (USENIX ATC 2023), as is the experiment.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

GPU_MILLI = "alibabacloud.com/gpu-milli"
POLICIES = ("Random", "DotProduct", "GpuClustering", "GpuPacking", "BestFit", "FGD")
PLUGIN = Path(__file__).parents[1] / "plugins" / "gpu_share.py"


def typical_pods(pods: Path) -> list[dict[str, float]]:
    """Return the requests of the trace's pods and their counts, in the form of the plugin's arguments.

    All requests are included: without the rare pods that request eight cards, no whole nodes are kept free for them.
    """
    with pods.open(newline="", encoding="utf-8") as file:
        requested = Counter(
            (int(row["cpu_milli"]), int(row["num_gpu"]), int(row["gpu_milli"] or 0) if int(row["num_gpu"]) else 0)
            for row in csv.DictReader(file)
        )
    return [
        {"cpuMilli": cpu, "cards": cards, "cardMilli": milli, "share": count}
        for (cpu, cards, milli), count in sorted(requested.items())
    ]


def profile(policy: str, typical: list[dict[str, float]]) -> dict[str, Any]:
    """Return a configuration in which the policy alone chooses among the feasible nodes."""
    nothing = {"disabled": [{"name": "*"}]}
    ours = [{"name": "GpuShare", "weight": 1000}]
    args = {"policy": policy, **({"typicalPods": typical} if policy == "FGD" else {})}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {"enabled": ours},
                    "score": {**nothing, "enabled": ours},
                    "postFilter": nothing,
                },
                "pluginConfig": [{"name": "GpuShare", "args": args}],
            }
        ],
    }


def allocated(options: argparse.Namespace, config: Path, seed: int) -> tuple[float, float]:
    """Return the share of allocated GPUs at the end of one run, and the duration of the run in seconds."""
    fill = f"{GPU_MILLI}={options.percent:g}%"
    command = [sys.executable, "-m", "kschedd", "simulate", "--nodes", options.nodes, "--pods", options.pods]
    command += [
        "--plugin",
        PLUGIN,
        "--config",
        config,
        "--fill",
        fill,
        "--seed",
        seed,
        "--allow-pending",
        "--trust-plugins",
        "-o",
        "json",
    ]
    began = time.perf_counter()
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with status {ended.returncode}:\n{ended.stderr}")
    return json.loads(ended.stdout)["utilisation"][GPU_MILLI]["end"], time.perf_counter() - began


def seeds(text: str) -> list[int]:
    """`42-51`, or one number."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=Path, required=True, metavar="FILE.csv")
    parser.add_argument("--pods", type=Path, required=True, metavar="FILE.csv")
    parser.add_argument("--seeds", type=seeds, default="42-51", metavar="FIRST-LAST", help="default 42-51")
    parser.add_argument("--percent", type=float, default=130, help="how much is asked for in all; default 130")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="may be repeated; default: all six")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, each in a process of its own")
    options = parser.parse_args()
    typical = typical_pods(options.pods)
    print(f"{'POLICY':<14} {'MEAN':>7} {'DEVIATION':>10} {'LEAST':>7} {'MOST':>7} {'SECONDS A RUN':>14}", flush=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        for policy in options.policy or POLICIES:
            config = Path(folder) / f"{policy}.yaml"
            config.write_text(json.dumps(profile(policy, typical)), encoding="utf-8")  # JSON is YAML
            runs = list(pool.map(lambda seed, config=config: allocated(options, config, seed), options.seeds))
            shares = [100 * share for share, _ in runs]
            spread = statistics.stdev(shares) if len(shares) > 1 else 0.0
            took = statistics.median(seconds for _, seconds in runs)
            print(
                f"{policy:<14} {statistics.mean(shares):6.2f}% {spread:9.2f}% {min(shares):6.2f}% {max(shares):6.2f}% "
                f"{took:14.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
