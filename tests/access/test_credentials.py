"""Tests of rejected listener settings that would permit access without authentication, and of reloaded files."""

import os
import ssl
from pathlib import Path

import pytest
import trustme

from kschedd.access.addresses import Address
from kschedd.access.credentials import SOCKET_FLAGS, ListenSettings
from kschedd.access.errors import AccessError

ANYWHERE = Address("0.0.0.0", 6443)
HERE = Address("127.0.0.1", 8001)
FILE = Path("x.pem")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        pytest.param(ListenSettings(ANYWHERE), "TLS is required", id="plain-beyond-loopback"),
        pytest.param(
            ListenSettings(ANYWHERE, FILE, FILE), "authentication is required", id="nobody-is-asked-who-it-is"
        ),
        pytest.param(ListenSettings(HERE, FILE), "must be given together", id="a-certificate-without-its-key"),
        pytest.param(ListenSettings(HERE, client_ca=FILE), "requires TLS", id="client-certificates-without-tls"),
        pytest.param(
            ListenSettings(HERE, flags=SOCKET_FLAGS, open_locally=False),
            "--listen: authentication is required, since any local user could connect; give --tokens",
            id="a-socket-that-asks-for-no-token",
        ),
    ],
)
def test_settings_that_are_refused(settings: ListenSettings, why: str) -> None:
    with pytest.raises(AccessError, match=why):
        settings.load()


def test_loopback_needs_nothing() -> None:
    assert ListenSettings(HERE).load().settings.local


def certificate(folder: Path, name: str) -> bytes:
    """Write a certificate with this name and its key into the folder; return the certificate."""
    issued = trustme.CA().issue_cert(name)
    issued.cert_chain_pems[0].write_to_path(str(folder / "cert"))
    issued.private_key_pem.write_to_path(str(folder / "key"))
    return ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())


def test_what_is_read_again_is_what_the_files_say_now(tmp_path: Path) -> None:
    certificate(tmp_path, "localhost")
    tokens = tmp_path / "tokens"
    tokens.write_text("abc,ann,1\n")
    tokens.chmod(0o600)
    found = ListenSettings(HERE, tmp_path / "cert", tmp_path / "key", None, tokens).load()
    before = found.tls
    tokens.write_text("xyz,bob,2\n")
    found.reload()
    assert found.tls is not before
    assert [user.name for user in found.tokens.users] == ["bob"]
    assert found.tokens.user_of("abc") is None


@pytest.mark.parametrize("broken", ["tokens", "cert", "key"])
@pytest.mark.parametrize("as_pipe", [False, True])
def test_files_that_cannot_be_used_leave_what_was_there(tmp_path: Path, broken: str, as_pipe: bool) -> None:
    certificate(tmp_path, "localhost")
    tokens = tmp_path / "tokens"
    tokens.write_text("abc,ann,1\n")
    tokens.chmod(0o600)
    found = ListenSettings(HERE, tmp_path / "cert", tmp_path / "key", None, tokens).load()
    before = found.tls
    if as_pipe:
        (tmp_path / broken).unlink()
        os.mkfifo(tmp_path / broken)
    else:
        (tmp_path / broken).write_text("nonsense\n")
    with pytest.raises(AccessError):
        found.reload()
    assert found.tls is before
    assert found.tokens.user_of("abc") is not None
