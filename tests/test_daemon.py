"""Tests of the daemon as a process: its start, requests as bytes, invalid input, stop and kill."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import msgpack
import pytest
import trio
import trio.testing

from kschedd.actors.objects.journal import JournalActor
from kschedd.actors.queue import QueueActor
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.controllers.nodes.nodetaints import NodeTaints
from kschedd.framework.registry import PluginLoadError
from kschedd.rpc.client import Client
from kschedd.rpc.errors import DaemonRunningError
from kschedd.service.errors import RpcError
from kschedd.serving import BUG, run_daemon
from kschedd.startup.options import DaemonOptions, UnreadableFile, read_options
from kschedd.store.journal.format import JournalError
from kschedd.store.journal.state_dir import StateDirError, lock_state_dir
from tests.actors.clusters import deployment, node, pod
from tests.daemons import process


@asynccontextmanager
async def running(options: DaemonOptions) -> AsyncIterator[Path]:
    """Run a daemon in this process, and check that it exits cleanly."""
    statuses: list[int] = []

    async def run(task_status: trio.TaskStatus[Path]) -> None:
        statuses.append(await run_daemon(options, task_status=task_status))

    async with trio.open_nursery() as nursery:
        path = await nursery.start(run)
        yield path
        with trio.fail_after(90):
            async with Client.connect(path) as client:
                await client.call("daemon.stop", grace_s=0.2)
    assert statuses == [0]
    assert not path.exists()


@pytest.fixture
def options(tmp_path: Path) -> DaemonOptions:
    return DaemonOptions(socket=tmp_path / "kschedd.sock", seed=1, log_level="error")


async def listed(client: Client, kind: str, what: Callable[[dict[str, Any]], Any]) -> list[Any]:
    return [what(item) for item in (await client.call("objects.list", kind=kind))["items"]]


async def running_pods(client: Client, many: int) -> list[str]:
    """Wait until this many pods run; return their nodes."""
    with trio.fail_after(90):
        async with client.subscribe("objects.watch", kind="pods") as changes:
            while True:
                found = await client.call("objects.list", kind="pods", field_selector="status.phase=Running")
                if len(found["items"]) == many:
                    return [item["spec"]["nodeName"] for item in found["items"]]
                await anext(changes)


def test_a_daemon_whose_log_nobody_reads_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kschedd.cli", "run", "--socket", str(tmp_path / "s"), "--log-level", "info"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert child.stderr is not None
    assert b"started" in child.stderr.readline()
    child.stderr.close()
    child.send_signal(signal.SIGTERM)  # it logs the signal and the stop
    assert child.wait(20) == 0


async def test_a_pod_is_applied_and_read_in_bytes_written_by_hand(options: DaemonOptions) -> None:
    manifest = (
        b"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4, pods: 10}}\n---\n"
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: a}]}\n"
    )
    # [0, 1, "objects.apply", [manifest]]: fixarrays, a fixstr, a str 8
    apply = b"\x94\x00\x01\xadobjects.apply\x91\xd9" + bytes([len(manifest)]) + manifest
    # [0, 2, "objects.get", ["pod", "web"]]
    get = b"\x94\x00\x02\xabobjects.get\x92\xa3pod\xa3web"
    async with running(options) as path, await trio.open_unix_socket(path) as stream:
        unpacker = msgpack.Unpacker()

        async def answer() -> Any:
            with trio.fail_after(90):
                while True:
                    for message in unpacker:
                        return message
                    unpacker.feed(await stream.receive_some(65536))

        await stream.send_all(apply)
        kind, msgid, error, result = await answer()
        assert (kind, msgid, error) == (1, 1, None)
        assert [(one["kind"], one["name"], one["action"]) for one in result["results"]] == [
            ("Node", "n1", "created"),
            ("Pod", "web", "created"),
        ]
        with trio.fail_after(90):
            while True:
                await stream.send_all(get)
                found = (await answer())[3]["object"]
                if found["status"]["phase"] == "Running":
                    break
        assert found["spec"]["nodeName"] == "n1"


async def test_a_deployment_is_made_placed_run_and_explained(options: DaemonOptions) -> None:
    async with running(options) as path, Client.connect(path) as client:
        await client.call("objects.apply", [node("n1"), node("n2"), deployment(replicas=4)])
        assert sorted(await running_pods(client, 4)) == ["n1", "n1", "n2", "n2"]
        [name] = (await listed(client, "pods", lambda item: item["metadata"]["name"]))[:1]
        explained = await client.call("scheduler.explain", f"default/{name}")
        assert explained["node"] in ("n1", "n2")
        info = await client.call("daemon.info")
        assert info["objects"]["Pod"] == 4
        assert info["pid"] == os.getpid()


BAD_TEXT = {
    "a node with negative cpu": ({"kind": "Node", "status": {"allocatable": {"cpu": "-1"}}}, "status.allocatable"),
    "a selector with an unknown operator": (
        {
            "kind": "Pod",
            "spec": {
                "containers": [{"name": "a", "image": "a"}],
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]
                        }
                    }
                },
            },
        },
        "operator",
    ),
}


@pytest.mark.parametrize("which", BAD_TEXT)
async def test_bad_objects_are_refused_by_field_and_the_rest_goes_on(options: DaemonOptions, which: str) -> None:
    bad, path_part = BAD_TEXT[which]
    async with running(options) as path, Client.connect(path) as client:
        broken = {"apiVersion": "v1", "metadata": {"name": "bad"}, **bad}
        reported = await client.call("objects.apply", manifests=[node("n1"), broken, pod("good")], source="f")
        assert [one["name"] for one in reported["results"]] == ["n1", "good"]
        assert all(error["source"] == "f[1]" for error in reported["errors"])
        assert any(path_part in error["path"] for error in reported["errors"])
        assert await running_pods(client, 1) == ["n1"]


async def test_text_that_is_no_manifest_is_told_with_its_line(options: DaemonOptions) -> None:
    text = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\nkind: [\n---\n" + "x" * 1_000_000 + "\n"
    async with running(options) as path, Client.connect(path) as client:
        reported = await client.call("objects.apply", manifests=text, source="big.yaml")
        assert [one["name"] for one in reported["results"]] == ["n1"]
        assert [error["line"] for error in reported["errors"]] == [6, 7]
        assert all(error["source"] == "big.yaml" and len(error["message"]) < 5000 for error in reported["errors"])


async def test_clients_that_misbehave_disturb_nobody(options: DaemonOptions) -> None:
    async with running(options) as path, Client.connect(path) as client:
        async with await trio.open_unix_socket(path) as stream:
            await stream.send_all(b"GET / HTTP/1.1\r\n\r\n")
            with trio.fail_after(90):
                assert b"protocol_error" in await stream.receive_some(4096)
        large = [node(f"n{number}") for number in range(300)]
        async with await trio.open_unix_socket(path) as stream:  # disconnects during the request
            await stream.send_all(msgpack.packb([0, 1, "objects.apply", [large]]))
        async with await trio.open_unix_socket(path) as stream:  # disconnects within a message
            await stream.send_all(msgpack.packb([0, 1, "objects.apply", [large]])[:1000])
        with pytest.raises(RpcError, match=r'no method "objects\.aply"; did you mean "objects\.apply"'):
            await client.call("objects.aply")
        assert (await client.call("rpc.ping"))["pong"]


async def test_what_was_answered_is_there_after_a_restart(options: DaemonOptions, tmp_path: Path) -> None:
    options = attrs.evolve(options, state_dir=tmp_path / "state")
    async with running(options) as path, Client.connect(path) as client:
        await client.call("objects.apply", [node("n1"), deployment(replicas=2)])
        await running_pods(client, 2)
        with pytest.raises(StateDirError, match="in use by another daemon"):
            await run_daemon(attrs.evolve(options, socket=tmp_path / "other.sock"))
    async with running(options) as path, Client.connect(path) as client:
        assert await running_pods(client, 2) == ["n1", "n1"]
        await client.call("objects.scale", kind="deploy", name="web", replicas=3)
        assert await running_pods(client, 3) == ["n1"] * 3


async def test_two_daemons_do_not_share_a_socket(options: DaemonOptions) -> None:
    async with running(options):
        with pytest.raises(DaemonRunningError, match="another daemon answers"):
            await run_daemon(options)


async def test_a_bug_in_an_actor_stops_the_daemon_with_its_traceback(
    options: DaemonOptions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: QueueActor, *args: Any) -> Any:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(QueueActor, "_take", broken)
    statuses: list[int] = []

    async def run(task_status: trio.TaskStatus[Path]) -> None:
        statuses.append(await run_daemon(options, task_status=task_status))

    with trio.fail_after(90):
        async with trio.open_nursery() as nursery:
            path = await nursery.start(run)
            try:
                async with Client.connect(path) as client:
                    await client.call("objects.apply", [node()])
            except Exception:
                pass  # the daemon may have ended before it answers
    assert statuses == [BUG]
    assert not path.exists()
    log = capsys.readouterr().err
    assert "a fault of its own" in log
    assert "RuntimeError: a fault of ours" in log


async def test_an_object_that_a_controller_cannot_handle_is_named_and_the_daemon_goes_on(
    options: DaemonOptions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sync = NodeTaints._sync

    def broken(self: NodeTaints, view: Any, namespace: str, name: str, now: float) -> Any:
        if name == "odd":
            raise RuntimeError("of a node of that name")
        return sync(self, view, namespace, name, now)

    monkeypatch.setattr(NodeTaints, "_sync", broken)
    async with running(options) as path, Client.connect(path) as client:
        applied = await client.call("objects.apply", [node("odd"), node("good", unschedulable=True)])
        assert applied["errors"] == []
        with trio.fail_after(90):
            async with client.subscribe("objects.watch", kind="nodes") as changes:
                while not (await client.call("objects.get", "node", "good"))["object"]["spec"].get("taints"):
                    await anext(changes)
        (fault,) = (await client.call("daemon.info"))["faults"]
        assert (fault["kind"], fault["name"], fault["component"]) == ("Node", "odd", "node-condition-taints")
        assert fault["why"].startswith("RuntimeError: of a node of that name")
        events = (await client.call("events.list", **{"for": "node/odd"}))["events"]
        assert [(event["reason"], event["from"]) for event in events] == [("Fault", "node-condition-taints")]
        assert events[0]["message"] == fault["why"]
        assert (await client.call("events.list", **{"for": "node/good"}))["events"] == []
    lines = [line for line in capsys.readouterr().err.splitlines() if "object_fault" in line]
    assert len(lines) == 1
    assert "Node/odd" in lines[0]


def test_options_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    with pytest.raises(UnreadableFile, match=r"config\.yaml: cannot be read: No such file"):
        read_options(DaemonOptions(config_file=config))
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: NodeResorcesFit\n"
    )
    with pytest.raises(ConfigErrors, match=r"config\.yaml:7: .*NodeResorcesFit"):
        read_options(DaemonOptions(config_file=config))
    plugin = tmp_path / "mine.py"
    plugin.write_text("raise ValueError('boom')")
    with pytest.raises(PluginLoadError, match=r"mine\.py: cannot be imported: ValueError: boom \(mine\.py:1\)"):
        read_options(DaemonOptions(plugin_files=(plugin,)))
    plugin.write_text("raise SystemExit(0)")
    with pytest.raises(PluginLoadError, match=r"mine\.py: cannot be imported: SystemExit: 0 \(mine\.py:1\)"):
        read_options(DaemonOptions(plugin_files=(plugin,)))


def test_plugins_from_a_file_can_be_named_in_the_configuration(tmp_path: Path) -> None:
    plugin, config = tmp_path / "mine.py", tmp_path / "config.yaml"
    plugin.write_text(
        "class OnlyEven:\n    name = 'OnlyEven'\n    def filter(self, state, pod, node):\n        return None\n"
    )
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- plugins:\n    filter:\n      enabled:\n      - name: OnlyEven\n"
    )
    read, registry = read_options(DaemonOptions(config_file=config, plugin_files=(plugin,)))
    assert "OnlyEven" in read.profiles[0].names()
    assert registry.added["OnlyEven"].name == "OnlyEven"


def test_a_state_directory_is_one_daemons_and_can_be_taken_over(tmp_path: Path) -> None:
    where = tmp_path / "a" / "b"
    with lock_state_dir(where) as first:
        assert first.path == where
        with pytest.raises(StateDirError, match="in use by another daemon"), lock_state_dir(where):
            pass
    with lock_state_dir(where):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(StateDirError, match="is a file, not a directory"), lock_state_dir(tmp_path / "file"):
        pass
    with pytest.raises(StateDirError, match="File name too long"), lock_state_dir(tmp_path / ("a" * 300)):
        pass
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with (
        pytest.raises(StateDirError, match=r"a link to .*/gone, which does not exist"),
        lock_state_dir(tmp_path / "link"),
    ):
        pass


async def test_an_answered_write_survives_kill_9_and_sigterm_ends_in_order(tmp_path: Path) -> None:
    async with process(tmp_path) as daemon:
        async with Client.connect(tmp_path / "k.sock") as client:
            await client.call("objects.apply", [node("n1")])
            names = []
            for number in range(8):
                await client.call("objects.create", pod(f"p{number}"))
                names.append(f"p{number}")
            daemon.kill()
        await trio.to_thread.run_sync(daemon.wait)
    async with process(tmp_path) as daemon:
        async with Client.connect(tmp_path / "k.sock") as client:
            there = await listed(client, "pods", lambda item: item["metadata"]["name"])
            assert set(names) <= set(there)
            assert await running_pods(client, len(there)) == ["n1"] * len(there)
        daemon.send_signal(signal.SIGTERM)
        assert await trio.to_thread.run_sync(daemon.wait) == 0
        log = (tmp_path / "log").read_text()
        assert "SIGTERM" in log
        assert "stopped" in log
        assert not (tmp_path / "k.sock").exists()


async def test_a_daemon_whose_journal_is_taken_away_is_read_only_until_it_is_back(
    options: DaemonOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, away = tmp_path / "state", tmp_path / "away"
    repaired = trio.Event()
    recover = JournalActor._recover

    async def recover_and_tell(actor: JournalActor, failure: JournalError) -> None:
        await recover(actor, failure)
        repaired.set()

    monkeypatch.setattr(JournalActor, "_recover", recover_and_tell)
    async with running(attrs.evolve(options, state_dir=state)) as path, Client.connect(path) as client:
        await client.call("objects.apply", [node("n1")])
        info = await client.call("daemon.info")
        state.rename(away)
        for _ in range(2):
            with pytest.raises(RpcError, match="was deleted or replaced while the daemon was using it") as refused:
                await client.call("objects.apply", [node("n2")])
            assert refused.value.code == "journal"
        assert await listed(client, "nodes", lambda item: item["metadata"]["name"]) == ["n1"]
        now = await client.call("daemon.info")
        assert "was deleted or replaced" in now["read_only"]
        assert (now["resource_version"], now["epoch"]) == (info["resource_version"], info["epoch"])
        away.rename(state)
        with trio.fail_after(90):
            await repaired.wait()
        await trio.testing.wait_all_tasks_blocked()  # the store has the journal's message
        assert (await client.call("daemon.info"))["read_only"] is None
        await client.call("objects.apply", [node("n2")])
    async with running(attrs.evolve(options, state_dir=state)) as path, Client.connect(path) as client:
        assert await listed(client, "nodes", lambda item: item["metadata"]["name"]) == ["n1", "n2"]
        assert (await client.call("daemon.info"))["epoch"] == info["epoch"]


async def test_a_plugin_whose_import_hangs_keeps_the_daemon_from_starting_and_is_named(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text("import threading\nthreading.Event().wait()\n")
    options = DaemonOptions(socket=tmp_path / "s", plugin_files=(file,), plugin_start_limit_s=0.1)
    with pytest.raises(PluginLoadError, match=r"slow\.py: cannot be imported: import did not return within 0\.1s"):
        await run_daemon(options)
