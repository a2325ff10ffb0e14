"""Apply each YAML file of kubernetes/examples with kubectl, and then delete the objects.

Files without a Kubernetes object are skipped. The result of a failed file is the last line of kubectl's error.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from tests.proofs.proof import checkout, commit_of, finish, options, proving, required


def manifests(folder: Path) -> Iterator[Path]:
    """Yield the files that contain an object."""
    for path in sorted((*folder.rglob("*.yaml"), *folder.rglob("*.yml"))):
        try:
            documents = list(yaml.safe_load_all(path.read_text()))
        except yaml.YAMLError:  # the file is a template of another program
            continue
        if any(isinstance(each, dict) and "apiVersion" in each and "kind" in each for each in documents):
            yield path


def main() -> int:
    chosen = options(__doc__, checkout)
    kubectl = required("kubectl")
    with proving("kubernetes/examples", commit_of(chosen.checkout)) as (proof, _):
        for path in manifests(chosen.checkout):
            name = str(path.relative_to(chosen.checkout))
            proof.run(name, kubectl, "apply", "-f", path)
            now = ("--ignore-not-found", "--force", "--grace-period=0", "--timeout=60s")
            proof.run(f"{name}: delete", kubectl, "delete", *now, "-f", path)
            if proof.rows[-2].why:  # objects that were rejected cannot be deleted
                proof.rows.pop()
    return finish(proof.rows, chosen.json)


if __name__ == "__main__":
    sys.exit(main())
