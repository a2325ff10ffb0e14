"""Run the tasks of gke-labs/k8s-ai-bench: setup.sh and verify.sh, which are unmodified, and between them a solution.

For a task without a solution, only setup.sh runs. Tasks whose verify.sh executes a command in a container cannot pass,
because containers do not run.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.proofs.proof import Proof, checkout, commit_of, finish, options, proving, required

HERE = Path(__file__).parent
_SETUP_S, _VERIFY_S = 200, 150
_AT_ONCE = 4


def task(proof: Proof, folder: Path, name: str) -> None:
    """Run one task in its folder, where its scripts expect to run."""
    if not proof.run(f"{name}: setup", "bash", "./setup.sh", folder=folder, timeout_s=_SETUP_S):
        return
    solution = HERE / "solutions" / f"{name}.sh"
    if solution.exists() and (folder / "verify.sh").exists():
        solved = Proof(proof.tool, proof.version, proof.environment)
        solved.run(f"{name}: solution", "bash", solution, folder=folder, timeout_s=_VERIFY_S)
        if solved.rows[0].why:
            proof.rows += solved.rows
        proof.run(f"{name}: verify", "bash", "./verify.sh", folder=folder, timeout_s=_VERIFY_S)


def main() -> int:
    chosen = options(__doc__, checkout, lambda parser: parser.add_argument("--task", action="append"))
    required("kubectl")
    tasks = chosen.checkout.resolve() / "tasks"
    with proving("k8s-ai-bench", commit_of(chosen.checkout)) as (proof, daemon):
        daemon.kschedd("apply", "-f", str(HERE / "world.yaml"))
        names = sorted(str(script.parent.relative_to(tasks)) for script in tasks.rglob("setup.sh"))
        chosen_names = [name for name in names if chosen.task is None or name in chosen.task]
        with ThreadPoolExecutor(_AT_ONCE) as threads:  # tasks do not interfere, because each task has its own namespace
            list(threads.map(lambda name: task(proof, tasks / name, name), chosen_names))
        proof.rows.sort(key=lambda row: row.what)
    return finish(proof.rows, chosen.json)


if __name__ == "__main__":
    sys.exit(main())
