"""Measure the time from `pip install` to the end of the tutorial "Kubernetes Basics" with kubectl.

The tutorial installs kschedd from this checkout into a new environment, and runs it from there like a user.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.proofs.proof import Proof, commit_of, finish, options, required

ROOT = Path(__file__).parents[2]
NAME = "kubernetes-bootcamp"
_IMAGE = "gcr.io/google-samples/kubernetes-bootcamp"
STEPS = (
    ("get", "nodes"),
    ("create", "deployment", NAME, f"--image={_IMAGE}:v1"),
    ("rollout", "status", f"deployment/{NAME}", "--timeout=60s"),
    ("get", "pods"),
    ("expose", f"deployment/{NAME}", "--type=NodePort", "--port=8080"),
    ("describe", f"services/{NAME}"),
    ("scale", f"deployment/{NAME}", "--replicas=4"),
    ("rollout", "status", f"deployment/{NAME}", "--timeout=60s"),
    ("set", "image", f"deployment/{NAME}", f"{NAME}={_IMAGE}:v2"),
    ("rollout", "status", f"deployment/{NAME}", "--timeout=60s"),
    ("rollout", "undo", f"deployment/{NAME}"),
    ("rollout", "status", f"deployment/{NAME}", "--timeout=60s"),
    ("delete", f"deployments/{NAME}", f"services/{NAME}"),
)


def main() -> int:
    chosen = options(__doc__)
    kubectl = required("kubectl")
    with tempfile.TemporaryDirectory() as there:
        folder = Path(there)
        environment = {**os.environ, "KSCHEDD_SOCKET": str(folder / "k.sock"), "KUBECONFIG": str(folder / "kubeconfig")}
        proof = Proof("kubernetes basics", commit_of(ROOT), environment)
        kschedd = folder / "venv" / "bin" / "kschedd"
        proof.run("python -m venv", sys.executable, "-m", "venv", folder / "venv")
        proof.run("pip install", folder / "venv" / "bin" / "pip", "install", "-q", ROOT, timeout_s=300)
        proof.run("kschedd run --detach --http", kschedd, "run", "--detach", "--http", "127.0.0.1:0")
        try:
            proof.run("kschedd apply (nodes)", kschedd, "apply", "-f", ROOT / "examples" / "demo")
            made = subprocess.run([kschedd, "kubeconfig"], env=environment, capture_output=True, text=True, check=True)
            (folder / "kubeconfig").write_text(made.stdout)
            for step in STEPS:
                proof.run(f"kubectl {' '.join(step[:2])}", kubectl, *step)
        finally:
            subprocess.run([kschedd, "stop"], env=environment, capture_output=True, check=True)
    return finish(proof.rows, chosen.json)


if __name__ == "__main__":
    sys.exit(main())
