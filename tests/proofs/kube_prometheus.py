"""Install prometheus-operator/kube-prometheus with the commands of its quickstart, and wait for its workloads."""

import sys

from tests.proofs.proof import checkout, commit_of, finish, options, proving, required


def main() -> int:
    chosen = options(__doc__, checkout)
    kubectl, folder = required("kubectl"), chosen.checkout / "manifests"
    with proving("kube-prometheus", commit_of(chosen.checkout)) as (proof, _):
        proof.run("apply setup", kubectl, "apply", "--server-side", "-f", folder / "setup")
        established = ("wait", "--for=condition=Established", "--all", "CustomResourceDefinition", "--timeout=60s")
        proof.run("definitions established", kubectl, *established)
        proof.run("apply", kubectl, "apply", "-f", folder)
        for kind in ("deployment", "daemonset"):
            proof.run(
                f"rollout of each {kind}", kubectl, "rollout", "status", kind, "-n", "monitoring", "--timeout=100s"
            )
        proof.run("delete", kubectl, "delete", "--ignore-not-found", "-f", folder, "-f", folder / "setup")
    return finish(proof.rows, chosen.json)


if __name__ == "__main__":
    sys.exit(main())
