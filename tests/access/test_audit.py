"""Tests of the audit log's entries for writes, and of a log file that is full, moved or not writable."""

import errno
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from kschedd.access import audit_log
from kschedd.access.audit import AuditedCall, AuditOutcome, audit_event, ref_of_path
from kschedd.access.audit_log import AuditFile, AuditLog
from kschedd.access.errors import AccessError
from kschedd.access.users import Caller, User

ANN = Caller(User("ann", ("system:masters",), uid="1000"), 4711, 1000)


def test_an_event_of_a_method_of_the_socket() -> None:
    call = AuditedCall.of_method(
        ANN, "objects.delete", {"kind": "Pod", "name": "web", "namespace": "x", "all": False, "dry_run": None}, 1.5
    )
    assert audit_event(call, AuditOutcome(), 2.25, "id") == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "id",
        "stage": "ResponseComplete",
        "requestURI": "/rpc/objects.delete",
        "verb": "objects.delete",
        "user": {
            "username": "ann",
            "uid": "1000",
            "groups": ["system:masters"],
            "extra": {"kschedd.io/pid": ["4711"], "kschedd.io/uid": ["1000"]},
        },
        "sourceIPs": [],
        "objectRef": {"resource": "Pod", "namespace": "x", "name": "web"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "1970-01-01T00:00:01.500000Z",
        "stageTimestamp": "1970-01-01T00:00:02.250000Z",
        "annotations": {"kschedd.io/params": '{"kind": "Pod", "name": "web", "namespace": "x", "all": false}'},
    }


def test_a_failure_says_what_the_client_was_told() -> None:
    call = AuditedCall.of_method(attrs.evolve(ANN, process=0, address="10.0.0.1"), "nodes.cordon", {"name": "n"}, 0)
    event = audit_event(call, AuditOutcome.of_error("not_found", "there is no node n"), 0, "id")
    assert event["responseStatus"] == {
        "metadata": {},
        "code": 404,
        "status": "Failure",
        "reason": "not_found",
        "message": "there is no node n",
    }
    assert event["sourceIPs"] == ["10.0.0.1"]
    assert event["objectRef"] == {"resource": "Node", "name": "n"}


def test_whoever_asks_in_anothers_name_is_named_first() -> None:
    acting = User("eve", ("dev",), impersonated=True, by="ann", by_groups=("system:masters",))
    event = audit_event(AuditedCall(Caller(acting), "create", "/api", 0), AuditOutcome(201), 0, "id")
    assert event["user"] == {"username": "ann", "groups": ["system:masters"]}
    assert event["impersonatedUser"] == {"username": "eve", "groups": ["dev"]}


def test_neither_objects_nor_long_texts_are_in_it() -> None:
    manifest = {"kind": "Secret", "metadata": {"name": "s", "namespace": "x"}, "data": {"k": "hunter2"}}
    event = audit_event(
        AuditedCall.of_method(ANN, "objects.create", {"manifest": manifest, "namespace": "n" * 5000}, 0),
        AuditOutcome.of_error("invalid", "m" * 5000),
        0,
        "id",
    )
    text = json.dumps(event)
    assert "hunter2" not in text
    assert len(text) < 5000
    assert event["objectRef"]["resource"] == "Secret"


@pytest.mark.parametrize(
    ("path", "ref"),
    [
        ("/api/v1/namespaces/x/pods/p/binding", ("pods", "x", "p", "", "v1", "binding")),
        ("/apis/apps/v1/namespaces/x/deployments", ("deployments", "x", "", "apps", "v1", "")),
        ("/api/v1/namespaces/x", ("namespaces", "", "x", "", "v1", "")),
        ("/api/v1/namespaces/x/finalize", ("namespaces", "", "x", "", "v1", "finalize")),
        ("/api/v1/nodes/n/status", ("nodes", "", "n", "", "v1", "status")),
    ],
)
def test_the_object_that_a_path_names(path: str, ref: tuple[str, ...]) -> None:
    fields = ("resource", "namespace", "name", "apiGroup", "apiVersion", "subresource")
    assert ref_of_path(path) == {field: value for field, value in zip(fields, ref, strict=True) if value}


# The file


def test_a_file_is_rotated_and_the_oldest_goes(tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit.log", max_bytes=25, backups=2)
    for number in range(8):
        file.write([b"%09d\n" % number])
    file.close()
    written = {path.name: path.read_text().split() for path in tmp_path.iterdir()}
    assert written == {
        "audit.log": ["000000006", "000000007"],
        "audit.log.1": ["000000004", "000000005"],
        "audit.log.2": ["000000002", "000000003"],
    }
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = AuditFile(path)
    file.write([b"a\n"])
    path.rename(tmp_path / "moved")
    file.write([b"b\n"])
    file.close()
    assert (tmp_path / "moved").read_text() == "a\n"
    assert path.read_text() == "b\n"


def test_a_line_that_does_not_fit_on_the_disk_is_not_there_at_all(tmp_path: Path, monkeypatch: Any) -> None:
    file = AuditFile(tmp_path / "audit.log")
    file.write([b"whole\n"])
    monkeypatch.setattr(audit_log.os, "write", _half_then_full(os.write))
    with pytest.raises(OSError, match="No space left"):
        file.write([b"only a part of this\n"])
    monkeypatch.undo()
    file.write([b"again\n"])
    file.close()
    assert (tmp_path / "audit.log").read_text() == "whole\nagain\n"


def _half_then_full(write: Callable[[int, bytes], int]) -> Callable[[int, bytes], int]:
    calls = 0

    def writing(descriptor: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[: len(data) // 2])

    return writing


# The log


@attrs.define(eq=False)
class Disk:
    """A file on a disk that may be full; it records each attempt to write."""

    full: bool = False
    lines: list[dict[str, Any]] = attrs.field(factory=list)
    path: Path = Path("audit.log")

    def open(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        self.full = True

    def write(self, lines: Sequence[bytes]) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.lines += map(json.loads, lines)


async def written(disk: Disk, *names: str, waiting: int = 0) -> AuditLog:
    log = AuditLog(disk, lambda: 0.0, lambda: "id", log=Quiet())
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(log.run)
            for name in names:
                log.note(AuditedCall(ANN, name, "/rpc", 0), AuditOutcome())
            log.close()
    return log


@attrs.define
class Quiet:
    reported: list[str] = attrs.field(factory=list)
    failed: trio.Event = attrs.field(factory=trio.Event)

    def error(self, event: str, **fields: Any) -> None:
        self.failed.set()
        self.reported.append(f"{event}: {fields['why']}")

    def warning(self, event: str, **fields: Any) -> None:
        self.reported.append(f"{event}: {fields['what']}")


async def test_what_was_noted_is_written_before_the_end() -> None:
    disk = Disk()
    log = await written(disk, *"abc")
    assert [line["verb"] for line in disk.lines] == ["a", "b", "c"]
    assert (log.written, log.dropped) == (3, 0)


async def test_a_disk_that_is_full_loses_lines_and_nothing_else() -> None:
    disk, quiet = Disk(), Quiet()
    log = AuditLog(disk, lambda: 0.0, lambda: "id", log=quiet)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await nursery.start(log.run)
            disk.full = True
            log.note(AuditedCall(ANN, "lost", "/rpc", 0), AuditOutcome())
            await quiet.failed.wait()
            assert log.dropped == 1
            disk.full = False
            log.note(AuditedCall(ANN, "kept", "/rpc", 0), AuditOutcome())
            log.close()
    assert [line["verb"] for line in disk.lines] == ["kept"]
    assert (log.written, log.dropped, log.failing) == (1, 1, "")
    assert quiet.reported == ["audit_log: No space left on device", "audit_log: it is written again"]


async def test_what_waits_is_bounded() -> None:
    disk, quiet = Disk(), Quiet()
    log = AuditLog(disk, lambda: 0.0, lambda: "id", 2, quiet)
    for name in "abcde":
        log.note(AuditedCall(ANN, name, "/rpc", 0), AuditOutcome())
    assert log.dropped == 3
    assert log.used() == (2, 2)
    log.close()
    await log.run()
    assert [line["verb"] for line in disk.lines] == ["a", "b"]


async def test_a_file_that_cannot_be_made_is_refused_at_the_start(tmp_path: Path) -> None:
    log = AuditLog(AuditFile(tmp_path / "none" / "audit.log"))
    with pytest.raises(AccessError, match=r"--audit-log: .* cannot be written: No such file"):
        await log.run()
