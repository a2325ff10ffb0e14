"""Tests that malicious recordings are rejected, or end their replay, with a message and with little memory."""

import random
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import msgpack
import pytest

from kschedd.cli import main
from kschedd.recording.format import HEADER, MARK, NOTES, FrameWriter, RecordingHeader, frame
from kschedd.recording.notes import NoteKind
from kschedd.recording.reading import RecordingFile
from kschedd.recording.values import UnreadableValue, unpack
from tests.simulation.replay.conftest import busy, late_run  # noqa: F401 - fixtures

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PLAIN = RecordingHeader("0.1", "1.34", 7, 100.0, CONFIG, {}, 300, b"\xc0", [], {})
MOST_BYTES = 16 << 20


def nested(depth: int) -> bytes:
    packed: bytes = msgpack.packb(None)
    for _ in range(depth):
        packed = msgpack.packb(msgpack.ExtType(1, packed))
    return packed


def of_header(**fields: Any) -> bytes:
    raw = {**attrs.asdict(PLAIN), **fields}
    return MARK + b"1\n" + frame(0, HEADER, msgpack.packb(raw))


def of_body(body: bytes) -> bytes:
    return of_header() + frame(1, NOTES, body)


def of_notes(*notes: Any) -> bytes:
    return of_body(zlib.compress(b"".join(map(msgpack.packb, notes))))


POD = msgpack.packb({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}, "spec": {}})


@pytest.mark.parametrize(
    ("content", "status"),
    [
        pytest.param(MARK + b"1\n" + frame(0, HEADER, b"\x91" * 5000), 2, id="a-header-of-nests"),
        pytest.param(of_header(seed="x"), 2, id="a-seed-that-is-none"),
        pytest.param(of_header(start_s=float("nan")), 2, id="no-time"),
        pytest.param(of_header(start_s=1e300), 2, id="a-time-that-never-comes"),
        pytest.param(of_header(kube_version="9.99"), 2, id="a-version-that-is-none"),
        pytest.param(of_header(config="]["), 2, id="a-configuration-that-is-none"),
        pytest.param(of_header(plugins={"Evil": 7}), 2, id="a-plugin-of-no-methods"),
        pytest.param(of_header() + frame(1, NOTES, b"")[:-1] + b"\xff", 0, id="a-frame-of-another-kind"),
        pytest.param(of_header() + (0x3FFF_FFFF).to_bytes(4) + bytes(9), 0, id="a-frame-of-a-gigabyte"),
        pytest.param(of_body(b"plain"), 0, id="notes-that-are-not-compressed"),
        pytest.param(of_body(zlib.compress(b"\x91" * 100_000)), 0, id="notes-within-notes"),
        pytest.param(of_notes([]), 0, id="an-empty-note"),
        pytest.param(of_notes({"a": 1}), 0, id="a-note-that-is-none"),
        pytest.param(of_notes([9999]), 1, id="a-kind-that-nobody-knows"),
        pytest.param(of_notes([NoteKind.TICK]), 1, id="no-values"),
        pytest.param(of_notes([NoteKind.TICK, "soon"]), 1, id="values-of-another-type"),
        pytest.param(of_notes([NoteKind.TICK, float("inf")]), 1, id="a-time-beyond-time"),
        pytest.param(of_notes([NoteKind.ANSWER]), 0, id="an-answer-to-nobody"),
        pytest.param(of_notes([NoteKind.BEGIN, 1.0, "u"]), 1, id="an-attempt-of-nothing"),
        pytest.param(of_notes([NoteKind.OBSERVE, 1.0, [[7, "Pod", POD, 1]]]), 1, id="an-event-of-no-type"),
        pytest.param(of_notes([NoteKind.OBSERVE, 1.0, [[0, "Pod", b"\xc1", 1]]]), 1, id="an-object-of-no-bytes"),
        pytest.param(of_notes([NoteKind.MADE, "x", nested(5000)]), 2, id="values-within-values"),
        pytest.param(of_notes([NoteKind.LAYOUT, ["n"] * 65, [10**9]]), 0, id="rows-that-are-none"),
        pytest.param(of_notes([NoteKind.DRIVER_STATE, nested(3)]), 1, id="a-state-of-nothing"),
        pytest.param(of_notes([NoteKind.QUEUE_STATE, msgpack.packb({"entries": [[]]})]), 1, id="a-queue-of-nothing"),
    ],
)
def test_it_is_refused_or_ends_in_words(
    content: bytes, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r").write_bytes(content)
    assert main(["replay", str(tmp_path / "r")]) == status
    reported = capsys.readouterr()
    assert "Traceback" not in reported.err + reported.out
    for words in (["--redact", str(tmp_path / "new")], ["--config", str(tmp_path / "r")]):
        assert main(["replay", str(tmp_path / "r"), *words]) in (0, 1, 2)
        assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(of_header() + (0x3FFF_FFFF).to_bytes(4) + bytes(9), id="a-frame-of-a-gigabyte"),
        pytest.param(of_body(zlib.compress(bytes(64 << 20))), id="much-of-nothing"),
        pytest.param(of_body(zlib.compress(b"\x91\xc0" * (16 << 20))), id="many-notes"),
        pytest.param(of_body(zlib.compress(b"\xc6\x7f\xff\xff\xff" + bytes(2 << 20))), id="a-note-of-gigabytes"),
    ],
)
def test_it_takes_no_room(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(content)
    tracemalloc.start()
    try:
        with RecordingFile.open(tmp_path / "r") as recording:
            assert sum(1 for _ in recording.notes()) == 0
            assert recording.broken
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()


def test_no_value_is_deeper_than_the_stack() -> None:
    with pytest.raises(UnreadableValue):
        unpack(nested(100_000 // 8))


def changed(value: Any, chance: random.Random) -> Any:
    """Return the value with one part of it replaced."""
    others: list[Callable[[], Any]] = [lambda: None, lambda: -1, lambda: "x", lambda: [], lambda: 1 << 63, lambda: b""]
    if isinstance(value, list | tuple) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        return [changed(one, chance) if place == at else one for place, one in enumerate(value)]
    if isinstance(value, bytes) and value and chance.random() < 0.7:
        at = chance.randrange(len(value))
        return value[:at] + bytes([chance.randrange(256)]) + value[at + 1 :]
    return chance.choice(others)()


def tampered(notes: list[Any], seed: int, path: Path, header: RecordingHeader) -> None:
    """Write a recording with some notes changed, removed, duplicated or reordered."""
    chance = random.Random(seed)
    done = list(notes)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(done))
        match chance.randrange(4):
            case 0:
                del done[at]
            case 1:
                done.insert(at, chance.choice(done))
            case _:
                done[at] = [done[at][0], *changed(done[at][1:], chance)] if len(done[at]) > 1 else done[at]
    with path.open("wb") as file:
        writer = FrameWriter(file)
        writer.begin(header)
        writer.add_notes(map(msgpack.packb, done))
        writer.end()


@pytest.mark.parametrize("run", ["busy", "late_run"])
def test_one_that_was_tampered_with_ends_in_words(
    run: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RecordingFile.open(request.getfixturevalue(run)) as recording:
        notes, header = list(recording.notes()), recording.header
    for seed in range(8):
        tampered(notes, seed, tmp_path / f"r{seed}", header)
        assert main(["replay", str(tmp_path / f"r{seed}")]) in (0, 1, 2)
        assert "Traceback" not in capsys.readouterr().err
