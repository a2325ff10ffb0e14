"""RemoteCluster: a running daemon with the operations of a cluster in process."""

from pathlib import Path

import pytest
import trio

from kschedd import RemoteCluster, RpcError, connect, node, pod
from kschedd.rpc.errors import NoDaemonError
from kschedd.serving import run_daemon
from kschedd.startup.options import DaemonOptions


def use(cluster: RemoteCluster) -> None:
    """Use each operation that the socket serves otherwise than a cluster in process does."""
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
    with pytest.raises(RpcError) as missing:
        cluster.get("Pod", "nobody")
    assert missing.value.code == "not_found"


async def test_the_same_operations_over_the_socket(tmp_path: Path, nursery: trio.Nursery) -> None:
    options = DaemonOptions(socket=tmp_path / "k.sock", speed=0.0, seed=1)

    async def serve(task_status: trio.TaskStatus[Path]) -> None:
        await run_daemon(options, task_status=task_status)

    await nursery.start(serve)

    def with_client() -> None:
        with connect(options.socket, timeout_s=60) as cluster:
            use(cluster)

    with trio.fail_after(120):
        await trio.to_thread.run_sync(with_client)
    nursery.cancel_scope.cancel()


def test_no_daemon_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(NoDaemonError, match=r"nothing\.sock"):
        connect(tmp_path / "nothing.sock")
