"""Tests of how clients find their daemon, from their options and their environment."""

from pathlib import Path

import pytest

from kschedd.access.addresses import Address
from kschedd.rpc.endpoints import TcpEndpoint, endpoint_of
from kschedd.rpc.errors import SocketPathError
from kschedd.rpc.paths import default_socket_path


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SOCKET", "TOKEN", "TOKEN_FILE", "CA_FILE", "CERT_FILE", "KEY_FILE", "SERVER_NAME"):
        monkeypatch.delenv(f"KSCHEDD_{name}", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("token").write_text("sesame\n")
    Path("token").chmod(0o600)


def test_a_path_is_a_unix_socket(tmp_path: Path) -> None:
    assert endpoint_of(tmp_path / "k.sock") == tmp_path / "k.sock"


def test_the_address_says_everything() -> None:
    found = endpoint_of("tcp://10.0.0.1:7443?ca-file=a&token-file=token&cert-file=c&key-file=d&server-name=e")
    assert found == TcpEndpoint(Address("10.0.0.1", 7443), "sesame", Path("a"), Path("c"), Path("d"), "e")
    assert str(found) == "tcp://10.0.0.1:7443"
    assert "sesame" not in repr(found)


def test_what_it_does_not_say_is_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSCHEDD_SOCKET", "tcp://[::1]:7443")
    monkeypatch.setenv("KSCHEDD_TOKEN", "open")
    monkeypatch.setenv("KSCHEDD_CA_FILE", "ca.pem")
    assert endpoint_of(None) == TcpEndpoint(Address("::1", 7443), "open", Path("ca.pem"))
    monkeypatch.setenv("KSCHEDD_TOKEN_FILE", "token")
    assert endpoint_of(None) == TcpEndpoint(Address("::1", 7443), "sesame", Path("ca.pem"))


@pytest.mark.parametrize(
    ("address", "tls"),
    [
        ("tcp://127.0.0.1:1?token-file=token", False),
        ("tcp://127.0.0.1:1?token-file=token&ca-file=ca", True),
        ("tcp://10.0.0.1:1?token-file=token", True),
        ("tcp://example.org:1?token-file=token", True),
    ],
)
def test_plaintext_is_for_this_machine_only(address: str, tls: bool) -> None:
    found = endpoint_of(address)
    assert isinstance(found, TcpEndpoint)
    assert found.tls is tls


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("tcp://127.0.0.1:1", "a token is required"),
        ("tcp://127.0.0.1", "an address is HOST:PORT"),
        ("tcp://127.0.0.1:1?token=sesame", "a token in an address is seen by everybody"),
        ("tcp://127.0.0.1:1?tls=no", '"tls" is unknown; allowed: ca-file'),
        ("tcp://127.0.0.1:1?token-file=none", "No such file"),
        ("tls://127.0.0.1:1", "tls:// is unknown; allowed: a path, or tcp://HOST:PORT"),
    ],
)
def test_what_is_refused(address: str, why: str) -> None:
    with pytest.raises(SocketPathError, match=why) as refused:
        endpoint_of(address)
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize(("text", "mode"), [("a\nb\n", 0o600), ("a b", 0o600), ("sesame", 0o644)])
def test_files_of_tokens_that_are_refused(text: str, mode: int) -> None:
    Path("token").write_text(text)
    Path("token").chmod(mode)
    with pytest.raises(SocketPathError, match=r"printable ASCII|run chmod 0600"):
        endpoint_of("tcp://127.0.0.1:1?token-file=token")


def test_a_daemon_does_not_take_its_clients_address_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSCHEDD_SOCKET", "tcp://127.0.0.1:7443")
    with pytest.raises(SocketPathError, match="--listen"):
        default_socket_path()
