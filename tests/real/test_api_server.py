"""A conversation with a real kube-apiserver and with a daemon: the answers must be equal.

KUBE_APISERVER and ETCD name the programs; without them, the test is skipped. CONTRIBUTING.md describes how to get them.
"""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trustme

from kschedd.config.versions.kube_versions import DEFAULT
from tests.command_line_daemons import command_line_daemon
from tests.real.conversation import ServerUnderTest, Step, steps
from tests.real.test_components import program, release

TOKEN = "conversation"
#: Answers that differ, with the reason. An answer that has become equal must be removed.
KNOWN = {
    "definition": "a definition is accepted and established in the same request",
    "pod-changed": "from 1.37, the fields of a PodSpec have another order in the differences that a message shows",
    "stateful-set-changed": "from 1.37, each immutable field has an error of its own",
}
_LONGEST_S = 120


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def started(log: Path, *command: str) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@attrs.frozen
class Commands:
    """The command lines of etcd and kube-apiserver on loopback, and the server's address."""

    etcd: Sequence[str]
    apiserver: Sequence[str]
    server: ServerUnderTest


def real_commands(folder: Path) -> Commands:
    """Write keys and tokens to the folder; return the command lines."""
    path, etcd = program("KUBE_APISERVER"), os.environ.get("ETCD") or shutil.which("etcd")
    if etcd is None:
        pytest.skip("ETCD names no program: CONTRIBUTING.md describes how to get it")
    client, peer, port = free_port(), free_port(), free_port()
    authority = trustme.CA()
    served = authority.issue_cert("127.0.0.1", "localhost")
    served.private_key_pem.write_to_path(folder / "server.key")
    served.cert_chain_pems[0].write_to_path(folder / "server.crt")
    (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
    store = f"http://127.0.0.1:{client}"
    own = f"http://127.0.0.1:{peer}"
    of_etcd = (
        *(etcd, "--name", "r", "--data-dir", str(folder / "etcd"), "--unsafe-no-fsync", "--log-level", "warn"),
        *("--listen-client-urls", store, "--advertise-client-urls", store, "--listen-peer-urls", own),
        *("--initial-advertise-peer-urls", own, "--initial-cluster", f"r={own}"),
    )
    key, certificate = str(folder / "server.key"), str(folder / "server.crt")
    of_server = (
        *(path, "--etcd-servers", store, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1"),
        *("--secure-port", str(port), "--tls-cert-file", certificate, "--tls-private-key-file", key),
        *("--token-auth-file", str(folder / "tokens.csv"), "--authorization-mode", "RBAC"),
        *("--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key),
        *("--service-account-signing-key-file", key, "--service-cluster-ip-range", "10.96.0.0/16"),
        *("--endpoint-reconciler-type", "none", "--disable-admission-plugins", "ServiceAccount"),
    )
    pem = authority.cert_pem.bytes().decode("ascii")
    return Commands(of_etcd, of_server, ServerUnderTest(f"https://127.0.0.1:{port}", TOKEN, pem))


@contextmanager
def api_server(folder: Path) -> Iterator[ServerUnderTest]:
    """Run etcd and kube-apiserver on loopback."""
    commands = real_commands(folder)
    server = commands.server
    with started(folder / "etcd.log", *commands.etcd), started(folder / "apiserver.log", *commands.apiserver):
        wait_for(server, Step("GET", "/readyz"))
        yield server


def wait_for(server: ServerUnderTest, step: Step) -> Any:
    end = time.monotonic() + _LONGEST_S
    while True:
        try:
            status, body = server.answer(step)
        except OSError:
            status, body = 0, None
        if status == 200:
            return body
        assert time.monotonic() < end, (step, status, body)
        time.sleep(0.2)


def answers(server: ServerUnderTest) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, step in steps():
        if name.startswith("poll: "):
            wait_for(server, step)
        else:
            found[name] = server.answer(step)
    return found


def test_a_conversation_is_answered_alike(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    with api_server(real) as server:
        expected = answers(server)
    version = release(program("KUBE_APISERVER"))
    flags = ("--kube-version", version, "--without", "scheduler,kubelets,controllers")
    with command_line_daemon(tmp_path, *flags, nodes=0) as daemon:
        found = re.search(r"server: (http\S+)", daemon.kubeconfig().read_text())
        assert found is not None
        mine = answers(ServerUnderTest(found[1]))
    different = {name: (answer, mine[name]) for name, answer in expected.items() if answer != mine[name]}
    assert {name: answers for name, answers in different.items() if name not in KNOWN} == {}
    if version == DEFAULT.name:
        assert different.keys() == KNOWN.keys()
