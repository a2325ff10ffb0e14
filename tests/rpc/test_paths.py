import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from kschedd.rpc.blocking import BlockingClient
from kschedd.rpc.errors import DaemonRunningError, SocketPathError
from kschedd.rpc.paths import default_socket_path
from kschedd.rpc.sessions.listener import unix_listener


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Check that the folder for temporary files is used without a socket path and a runtime folder."""
    monkeypatch.delenv("KSCHEDD_SOCKET", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"kschedd-{os.getuid()}"


def make_directory(path: Path, mode: int) -> None:
    path.mkdir()
    path.chmod(mode)  # mkdir applies the umask to the mode


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_default_path(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_socket_path() == temporary / "kschedd.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    assert default_socket_path() == Path("/run/user/1000/kschedd/kschedd.sock")
    monkeypatch.setenv("KSCHEDD_SOCKET", "/elsewhere/k.sock")
    assert default_socket_path() == Path("/elsewhere/k.sock")


async def test_the_default_directory_is_made_for_its_owner_alone(temporary: Path) -> None:
    path = default_socket_path()
    async with unix_listener(path):
        assert mode_of(temporary) == 0o700
        assert mode_of(path) == 0o600
        BlockingClient().close()
    assert not path.exists()


async def test_a_default_directory_that_others_may_write_to_is_not_trusted(temporary: Path) -> None:
    make_directory(temporary, 0o777)
    with pytest.raises(SocketPathError, match=r"others may write to .* \(mode 0777\); chmod it to 0700"):
        BlockingClient()
    with pytest.raises(SocketPathError, match="others may write"):
        async with unix_listener(default_socket_path()):
            pass


async def test_a_default_directory_of_somebody_else_is_not_trusted(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_directory(temporary, 0o700)
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    with pytest.raises(SocketPathError, match=r"belongs to user .*, not to you"):
        BlockingClient()


def test_a_default_directory_that_is_a_link_is_not_trusted(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    temporary.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SocketPathError, match="is not a directory"):
        BlockingClient()


async def test_a_directory_that_the_user_chose_keeps_its_mode(tmp_path: Path) -> None:
    chosen = tmp_path / "mine"
    make_directory(chosen, 0o755)
    async with unix_listener(chosen / "k.sock"):
        pass
    assert mode_of(chosen) == 0o755


async def test_a_second_daemon_is_refused_and_the_first_keeps_its_socket(tmp_path: Path) -> None:
    path = tmp_path / "k.sock"
    async with unix_listener(path):
        with pytest.raises(DaemonRunningError, match="another daemon answers at"):
            async with unix_listener(path):
                pass
        BlockingClient(path).close()


async def test_a_daemon_too_busy_to_accept_is_still_one(tmp_path: Path) -> None:
    path = tmp_path / "k.sock"
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(str(path))
        busy.listen(0)
        waiting.connect(str(path))
        with pytest.raises(DaemonRunningError):
            async with unix_listener(path):
                pass


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "k.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with unix_listener(path):
        BlockingClient(path).close()


async def test_of_two_that_start_at_once_over_a_stale_socket_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "k.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    outcomes: list[str] = []
    done = trio.Event()

    async def start() -> None:
        try:
            async with unix_listener(path):
                outcomes.append("listens")
                await done.wait()
        except DaemonRunningError:
            outcomes.append("refused")
            done.set()

    with trio.fail_after(90):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(start)
            nursery.start_soon(start)
    assert sorted(outcomes) == ["listens", "refused"]


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("precious")
    with pytest.raises(SocketPathError, match="a file that is not a socket exists there"):
        async with unix_listener(path):
            pass
    assert path.read_text() == "precious"


async def test_a_socket_that_is_another_daemons_by_now_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "k.sock"
    async with unix_listener(path):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    assert path.exists()


async def test_a_directory_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SocketPathError, match="its directory cannot be created: "):
        async with unix_listener(tmp_path / "file" / "k.sock"):
            pass


def test_the_blocking_client_loads_no_trio() -> None:
    code = "import sys, kschedd.rpc.blocking; sys.exit('trio' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
