"""Tests of the recorded responses over HTTP: on kschedd's server, and on a real kube-apiserver if it is installed.

`KUBE_APISERVER` and `ETCD` are the paths of the real programs (v1.34, as recorded); `KUBE_APISERVER_PORT` is its port
(16443). Without them, the real server is not tested. Each server starts empty, without other components, and must agree
with every record in every part. A few kinds are tested here: `test_recorded` replays all recordings.
"""

import os
import subprocess
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
import trio

from kschedd.access.addresses import Address
from kschedd.access.credentials import ListenSettings
from kschedd.apiserver.serving import http_face
from kschedd.config.loading.load import default_config
from kschedd.controllers.parts import PARTS, admission_without
from kschedd.daemon import cluster_actors
from kschedd.startup.options import without_scheduler
from kschedd.startup.state import StateOptions
from kschedd.store.admission.chain import Admission
from tests.apiserver.recorded import FOLDER, load_check, read_family

_ASKED = {
    "create": ("create-configmap", "create-priorityclass", "create-lease"),
    "update": ("update-lease", "update-priorityclass"),
    "patch": ("patch-configmap", "patch-storageclass"),
}
_RANGE = "10.0.0.0/24"
_TOKEN = "contract"


@attrs.frozen
class Target:
    url: str
    token: str | None = None
    settle: float = 0.0  # seconds until admission has observed a write


@asynccontextmanager
async def ours(folder: Path) -> AsyncIterator[Target]:
    actors = cluster_actors(
        without_scheduler(default_config()),
        controllers=(),
        state=StateOptions(service_range=_RANGE, admission=Admission(admission_without(PARTS))),
    )
    settings = ListenSettings(Address("127.0.0.1", 0))
    async with (
        actors as cluster,
        http_face(settings.load(), cluster, "test", 3 << 20, _RANGE, PARTS) as face,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(face.run)
        yield Target(face.url)
        face.shut_down(0)


@asynccontextmanager
async def the_real_one(folder: Path) -> AsyncIterator[Target]:
    apiserver, etcd = os.environ.get("KUBE_APISERVER"), os.environ.get("ETCD")
    if not apiserver or not etcd:
        pytest.skip("there is no real server: name its binaries in KUBE_APISERVER and ETCD")
    port = os.environ.get("KUBE_APISERVER_PORT", "16443")
    key, tokens = folder / "sa.key", folder / "tokens.csv"
    tokens.write_text(f'{_TOKEN},admin,admin,"system:masters"\n')
    await trio.run_process(["openssl", "genrsa", "-out", str(key), "2048"], capture_stderr=True)
    sockets = f"unix://{folder}/etcd"
    etcd_flags = ["--data-dir", str(folder / "data"), "--listen-client-urls", sockets]
    etcd_flags += ["--advertise-client-urls", sockets, "--listen-peer-urls", f"unix://{folder}/peer"]
    flags = [
        f"--etcd-servers={sockets}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder}",
        f"--service-cluster-ip-range={_RANGE}",
        "--allow-privileged=true",
        "--disable-admission-plugins=ServiceAccount",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://contract",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
    ]
    async with trio.open_nursery() as processes:
        for command in ([etcd, *etcd_flags], [apiserver, *flags]):
            await processes.start(partial(trio.run_process, command, stderr=subprocess.DEVNULL))
        yield Target(f"https://127.0.0.1:{port}", _TOKEN, 0.3)
        processes.cancel_scope.cancel()


def differences(check: ModuleType, target: Target, records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the differences in a server's responses, after it reports that it is ready.

    All requests use one thread and one connection.
    """
    server = check.Server(target.url, target.token, target.token is not None)
    different = []
    try:
        while not _is_ready(check, server):
            time.sleep(0.5)  # no event is available from this process
        for record in records:
            for _, found in (
                check.judge(step["want"], got) for step, got in check.answers(server, record, target.settle)
            ):
                different += [f"{record['id']}: {each}" for each in check.spelled(found)]
    finally:
        if (connection := getattr(server.kept, "connection", None)) is not None:
            connection.close()
    return different


def _is_ready(check: ModuleType, server: Any) -> bool:
    try:
        status, *_ = server.ask("GET", "/readyz")
    except check.WRONG:
        return False
    return bool(status == 200)


@pytest.mark.parametrize("serving", [ours, the_real_one])
async def test_records_over_http(serving: Any, shared_part: Any, tmp_path: Path) -> None:
    folder = shared_part(FOLDER)
    check = load_check(folder)
    records = [record for family, ids in _ASKED.items() for record in read_family(folder, family)
               if record["id"].startswith(ids)]  # fmt: skip
    assert len(records) > 50, "there are some of each family"

    async with serving(tmp_path) as target:
        with trio.fail_after(300):
            found = await trio.to_thread.run_sync(differences, check, target, records, abandon_on_cancel=True)
    assert found == []
