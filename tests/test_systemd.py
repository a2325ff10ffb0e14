"""Tests of notifications to systemd and of reloads at SIGHUP, with a daemon in this process and a fake socket."""

import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from kschedd.access.addresses import Address
from kschedd.access.credentials import SOCKET_FLAGS, ListenSettings
from kschedd.rpc.client import Client
from kschedd.serving import run_daemon
from kschedd.startup.options import DaemonOptions
from kschedd.systemd import READY, ServiceManager

PLUGIN = """
class Likes:
    name = "Likes"
    def score(self, state, pod, node):
        return {score}
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: {percentage}
"""


@attrs.frozen(eq=False)
class Systemd:
    """A socket that receives notifications in systemd's place."""

    path: Path
    socket: Any

    async def heard(self) -> list[str]:
        """Return the lines of the next message."""
        with trio.fail_after(90):
            return (await self.socket.recv(4096)).decode().split("\n")


@asynccontextmanager
async def systemd(folder: Path) -> AsyncIterator[Systemd]:
    with trio.socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        await listening.bind(os.fspath(folder / "notify"))
        yield Systemd(folder / "notify", listening)


@pytest.fixture(autouse=True)
def hang_ups_are_heeded() -> Iterator[None]:
    """Enable SIGHUP, which a daemon ignores if these tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def options(tmp_path: Path) -> DaemonOptions:
    (tmp_path / "config.yaml").write_text(CONFIG.format(percentage=50))
    (tmp_path / "likes.py").write_text(PLUGIN.format(score=1))
    (tmp_path / "tokens").write_text("sesame,ali,1\n")
    (tmp_path / "tokens").chmod(0o600)
    listen = ListenSettings(
        Address("127.0.0.1", 0), token_file=tmp_path / "tokens", flags=SOCKET_FLAGS, open_locally=False
    )
    return DaemonOptions(
        socket=tmp_path / "k.sock",
        seed=1,
        log_level="error",
        config_file=tmp_path / "config.yaml",
        plugin_files=(tmp_path / "likes.py",),
        listen=listen,
    )


async def percentage(client: Client) -> int:
    return int((await client.call("scheduler.config"))["percentageOfNodesToScore"])


async def in_a_daemon(options: DaemonOptions, monkeypatch: pytest.MonkeyPatch, folder: Path, use: Any) -> list[str]:
    """Run `use` with a client of a daemon started as by systemd; return the last notification."""
    async with systemd(folder) as heard:
        monkeypatch.setenv("NOTIFY_SOCKET", str(heard.path))
        async with trio.open_nursery() as nursery:
            path = await nursery.start(run_in_order, options)
            assert (await heard.heard())[0] == READY
            async with Client.connect(path) as client:
                await use(client, heard)
                await client.call("daemon.stop", grace_s=0.2)
        return await heard.heard()


async def run_in_order(options: DaemonOptions, task_status: trio.TaskStatus[Path]) -> None:
    assert await run_daemon(options, task_status=task_status) == 0


async def reload(heard: Systemd) -> str:
    """Send SIGHUP; return the notifications until the reload is complete, and the status."""
    os.kill(os.getpid(), signal.SIGHUP)
    first, clock = await heard.heard()
    assert first == "RELOADING=1"
    assert clock.startswith("MONOTONIC_USEC=")
    ready, status = await heard.heard()
    assert ready == READY
    return status


async def test_a_hang_up_has_the_files_read_again(
    options: DaemonOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def use(client: Client, heard: Systemd) -> None:
        assert await percentage(client) == 50
        (tmp_path / "config.yaml").write_text(CONFIG.format(percentage=70))
        assert await reload(heard) == "STATUS=read again"
        assert await percentage(client) == 70
        (change,) = await client.call("config.changes")
        assert change["what"] == "read again"
        assert await reload(heard) == "STATUS=read again"
        assert len(await client.call("config.changes")) == 0, "plugins read again: there is no way back to the old ones"

    assert await in_a_daemon(options, monkeypatch, tmp_path, use) == ["STOPPING=1"]


def broken_config(folder: Path) -> None:
    (folder / "config.yaml").write_text(CONFIG.format(percentage="many"))


def broken_plugin(folder: Path) -> None:
    (folder / "likes.py").write_text("this is no Python")


def open_tokens(folder: Path) -> None:
    (folder / "tokens").chmod(0o644)


@pytest.mark.parametrize("spoil", [broken_config, broken_plugin, open_tokens])
async def test_a_file_that_cannot_be_used_leaves_what_there_was(
    options: DaemonOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    async def use(client: Client, heard: Systemd) -> None:
        if spoil is not broken_config:
            (tmp_path / "config.yaml").write_text(CONFIG.format(percentage=70))
        spoil(tmp_path)
        assert await reload(heard) == "STATUS=some files could not be used: see the log"
        assert await percentage(client) == (50 if spoil is broken_config else 70), "the others are read"
        assert [one["name"] for one in await client.call("plugins.list")] == ["Likes"]

    await in_a_daemon(options, monkeypatch, tmp_path, use)


async def test_files_that_have_become_pipes_are_not_waited_for(
    options: DaemonOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def use(client: Client, heard: Systemd) -> None:
        for name in ("config.yaml", "likes.py", "tokens"):
            kept = (tmp_path / name).rename(tmp_path / "kept")
            os.mkfifo(tmp_path / name)
            assert await reload(heard) == "STATUS=some files could not be used: see the log"
            kept.rename(tmp_path / name)
        (tmp_path / "config.yaml").write_text(CONFIG.format(percentage=70))
        assert await reload(heard) == "STATUS=read again"
        assert await percentage(client) == 70

    await in_a_daemon(options, monkeypatch, tmp_path, use)


async def test_the_watchdog_is_told_as_long_as_the_daemon_answers(tmp_path: Path, autojump_clock: Any) -> None:
    requests = 0

    async def alive() -> None:
        nonlocal requests
        requests += 1
        if requests > 3:
            await trio.sleep_forever()

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(os.fspath(tmp_path / "notify"))
        listening.setblocking(False)
        with trio.move_on_after(3600):
            await ServiceManager(str(tmp_path / "notify"), 30).watchdog(alive)
        reported = [listening.recv(100) for _ in range(3)]
        assert reported == [b"WATCHDOG=1"] * 3
        with pytest.raises(BlockingIOError):
            listening.recv(100)


@pytest.mark.parametrize(
    ("environment", "manager"),
    [
        ({}, ServiceManager()),
        ({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, ServiceManager("/run/n", 30)),
        ({"NOTIFY_SOCKET": "/run/n", "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, ServiceManager("/run/n")),
        ({"NOTIFY_SOCKET": "@n", "WATCHDOG_USEC": "soon"}, ServiceManager("@n")),
    ],
)
def test_what_the_environment_says(environment: dict[str, str], manager: ServiceManager) -> None:
    assert ServiceManager.of(environment, 7) == manager


def test_a_name_in_the_abstract_namespace() -> None:
    name = f"kschedd-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + name)
        ServiceManager(f"@{name}").tell(READY)
        listening.settimeout(30)
        assert listening.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "/nowhere/notify", "relative\0name", "x" * 500])
def test_where_nobody_listens_nothing_is_told(address: str) -> None:
    ServiceManager(address).tell(READY)
