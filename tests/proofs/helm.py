"""Install charts with Helm 4, run their tests, and uninstall them; requires helm-python-sdk.

An argument is NAME=CHART, or NAME=CHART,VALUES.json. The dependencies of a chart must be in the chart's folder. Pods
start without missing Secrets, because some charts create their Secrets in a container of a hook.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.proofs.proof import Proof, finish, options, proving

_WAIT_S = 90


def chart(proof: Proof, helm: Any, name: str, folder: Path, values: Any) -> None:
    client = helm.Config(kubeconfig_path=proof.environment["KUBECONFIG"], namespace=name, qps=200, burst_limit=400)
    loaded = helm.Chart.load(str(folder))
    about = f"{name} {loaded.version}"
    wait = {"wait": "watcher", "timeout": _WAIT_S}
    installed = proof.call(
        f"{about}: install",
        lambda: client.install(loaded, name, values, namespace=name, create_namespace=True, **wait),
    )
    if installed:
        proof.call(f"{about}: test", lambda: client.test(name, timeout=_WAIT_S, logs=False))
        proof.call(f"{about}: uninstall", lambda: client.uninstall(name, timeout=_WAIT_S))


def charts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("charts", nargs="+", metavar="NAME=CHART[,VALUES.json]")


def main() -> int:
    chosen = options(__doc__, charts)
    try:
        import helm_python as helm
    except ImportError:
        sys.exit("error: helm-python-sdk is required: pip install helm-python-sdk")
    with proving("helm", helm.helm_sdk_version(), "--missing-configuration", "ignore") as (proof, _):
        for argument in chosen.charts:
            name, _, place = argument.partition("=")
            folder, _, values = place.partition(",")
            chart(proof, helm, name, Path(folder), json.loads(Path(values).read_text()) if values else None)
    return finish(proof.rows, chosen.json)


if __name__ == "__main__":
    sys.exit(main())
