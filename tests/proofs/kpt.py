"""Apply packages with kpt, wait until their objects are current, and destroy them.

The packages are not modified; functions of packages need containers and do not run.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.proofs.proof import Proof, finish, options, proving, required


def package(proof: Proof, kpt: str, folder: Path) -> None:
    """Apply and destroy a copy of one package, because kpt writes an inventory into the folder."""
    name = folder.resolve().name
    with tempfile.TemporaryDirectory() as there:
        copy = Path(there) / name
        shutil.copytree(folder, copy)
        proof.run(f"{name}: init", kpt, "live", "init", copy)
        if proof.run(f"{name}: apply", kpt, "live", "apply", copy, "--reconcile-timeout=60s"):
            proof.run(f"{name}: status", kpt, "live", "status", copy)
            proof.run(f"{name}: destroy", kpt, "live", "destroy", copy)


def packages(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("packages", nargs="+", type=Path)


def main() -> int:
    chosen = options(__doc__, packages)
    kpt = required("kpt")
    version = subprocess.run([kpt, "version"], capture_output=True, text=True, check=True).stdout.strip()
    with proving("kpt", version) as (proof, _):
        proof.run("install-resource-group", kpt, "live", "install-resource-group")
        for folder in chosen.packages:
            package(proof, kpt, folder)
    return finish(proof.rows, chosen.json)


if __name__ == "__main__":
    sys.exit(main())
