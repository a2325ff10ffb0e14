"""Tests of RemoteCluster, which offers a running daemon with the operations of a cluster in process."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from kschedd import Cluster, CommandFailedError, RemoteCluster, RpcError, connect, job, node, pod
from kschedd.rpc.errors import NoDaemonError
from kschedd.serving import run_daemon
from kschedd.startup.options import DaemonOptions


def use(cluster: RemoteCluster) -> None:
    """Use each operation whose implementation differs from a cluster's in process."""
    cluster.apply(node("n1"), node("n2"), pod("a"), pod("b", cpu="50"))
    cluster.advance("10s")
    assert cluster.placements() == {"a": "n1", "b": None}
    assert [each.name for each in cluster.nodes] == ["n1", "n2"]
    assert [each.name for each in cluster.pending()] == ["b"]
    assert "50 cpu requested" in cluster.explain("b").cause.message
    assert "default/a" in [each.pod for each in cluster.decisions]
    with cluster.fork() as fork:
        fork.apply(pod("c"))
        fork.advance("1m")
        assert [each.name for each in cluster.compare(fork)] == ["c"]
    plan = cluster.plan(lambda copy: copy.delete("Node", "n1"))
    assert [each.name for each in plan.nodes] == ["n1"]
    assert "c" not in cluster.placements()
    drained = cluster.plan("drain n1 --force")
    assert [(each.name, each.change, each.to) for each in drained.pods] == [("a", "gone", "")]
    with pytest.raises(CommandFailedError, match="not found"):
        cluster.plan(["cordon nothing"])
    assert cluster.run("get nodes -o name") == "node/n1\nnode/n2\n"
    assert cluster.run("apply -f -", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n").startswith("configmap/m")
    packing = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    assert cluster.compare(config=packing, manifests=[pod("x")]).pods == 1
    cluster.apply(job("short", run_seconds=30))
    before = cluster.time
    assert cluster.run_until(lambda one: one.get("Job", "short")["status"].get("succeeded") == 1)
    assert 30 <= cluster.time - before <= 40
    assert not cluster.run_until(lambda one: False, "1s")
    assert cluster.elapsed == cluster.time - before + 10
    assert cluster.run_until_idle()
    with cluster.fork() as fork:
        assert fork.run_until_idle()
        assert fork.run("get pods a -o name") == "pod/a\n"
        assert fork.run_until(lambda one: one.elapsed >= 60)
    with pytest.raises(RpcError) as missing:
        cluster.get("Pod", "nobody")
    assert missing.value.code == "not_found"


async def with_daemon(folder: Path, nursery: trio.Nursery, work: Callable[[Path], None]) -> None:
    """Run the function in a thread while a daemon in virtual time serves its socket."""
    options = DaemonOptions(socket=folder / "k.sock", speed=0.0, seed=1)

    async def serve(task_status: trio.TaskStatus[Path]) -> None:
        await run_daemon(options, task_status=task_status)

    await nursery.start(serve)
    with trio.fail_after(120):
        await trio.to_thread.run_sync(work, options.socket)
    nursery.cancel_scope.cancel()


async def test_the_same_operations_over_the_socket(tmp_path: Path, nursery: trio.Nursery) -> None:
    def with_client(socket: Path) -> None:
        with connect(socket, timeout_s=60) as cluster:
            use(cluster)

    await with_daemon(tmp_path, nursery, with_client)


async def test_a_verb_with_an_answer_imports_neither_trio_nor_numpy(tmp_path: Path, nursery: trio.Nursery) -> None:
    def get(socket: Path) -> None:
        code = (
            "import sys; from kschedd.cli import main;"
            f"assert main(['--socket', {str(socket)!r}, 'get', 'namespaces']) == 0;"
            "print([m for m in ('trio', 'numpy', 'prompt_toolkit', 'yaml', 'structlog') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert "kube-system" in done.stdout
        assert done.stdout.splitlines()[-1] == "[]"

    await with_daemon(tmp_path, nursery, get)


def test_no_daemon_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(NoDaemonError, match=r"nothing\.sock"):
        connect(tmp_path / "nothing.sock")


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_a_daemon_has_the_surface_of_a_cluster_in_process() -> None:
    """Compare both classes; this test and docs/LIBRARY.md list the differences."""
    in_process = {"from_dump", "snapshot", "restore", "warnings", "version", "plugin_faults"}
    assert public(Cluster) - public(RemoteCluster) <= in_process
    assert public(RemoteCluster) - public(Cluster) == set()
    for name in public(Cluster) & public(RemoteCluster):
        ours, theirs = getattr(Cluster, name), getattr(RemoteCluster, name)
        assert isinstance(ours, property) == isinstance(theirs, property), name
        if callable(ours):
            parameters = [list(inspect.signature(each).parameters) for each in (ours, theirs)]
            assert parameters[0] == parameters[1], name
