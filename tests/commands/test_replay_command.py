"""Tests of `kschedd replay` on the command line: output, and invalid input."""

import json
from pathlib import Path

import attrs
import msgpack
import pytest
import trio

from kschedd.cli import main
from kschedd.recording.format import FrameWriter
from kschedd.recording.reading import RecordingFile
from tests.simulation.replay.live import busy_run


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recordings") / "r.rec"
    trio.run(busy_run, file, 1, None, None, 4)
    return file


def test_it_says_that_all_is_as_it_was(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(recording)]) == 0
    out = capsys.readouterr().out
    assert "Kubernetes 1.34, seed 1, from 2025-01-01T" in out
    assert out.endswith("same       as recorded, attempt by attempt\n")
    assert main(["replay", str(recording), "--until", "3", "-o", "json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["attempts"], reported["diverged"], reported["broken"], reported["ended"]) == (3, "", "", False)


def test_one_that_breaks_off_is_replayed_as_far_as_it_is_whole(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut").write_bytes(recording.read_bytes()[:-200])
    assert main(["replay", str(tmp_path / "cut")]) == 0
    assert "broken off it is truncated at byte " in capsys.readouterr().out


def test_a_seed_that_was_tampered_with_shows(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RecordingFile.open(recording) as read, (tmp_path / "other").open("wb") as file:
        writer = FrameWriter(file)
        writer.begin(attrs.evolve(read.header, seed=2))
        writer.add_notes(msgpack.packb(note) for note in read.notes())
        writer.end()
    assert main(["replay", str(tmp_path / "other")]) == 1
    assert "differs    the replay diverges from the recording at note " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(["--until", "9h"], "the recording ends at 2025-01-01T", id="beyond-the-end"),
        pytest.param(["--to", "nobody"], "the recording has no attempt of such a pod", id="no-such-pod"),
        pytest.param(["--until", "1", "--to", "p1"], "give one of them", id="both"),
        pytest.param(["--config", "/nowhere"], "/nowhere: cannot be read", id="no-configuration"),
        pytest.param(["--kube-version", "1.36", "--until", "1"], "compare whole runs", id="a-part-of-a-comparison"),
        pytest.param(["--decisions", "/nowhere/log"], "/nowhere/log: cannot be written", id="no-log"),
    ],
)
def test_wrong_input_is_refused_in_words(
    words: list[str], why: str, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(recording), *words]) == 2
    assert why in capsys.readouterr().err


def test_what_is_no_recording_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "none")]) == 2
    assert "cannot be read: No such file or directory" in capsys.readouterr().err
    (tmp_path / "pod.yaml").write_text("kind: Pod\n")
    assert main(["replay", str(tmp_path / "pod.yaml")]) == 2
    assert "is not a recording" in capsys.readouterr().err


def test_another_version_is_compared(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(recording), "--kube-version", "1.34.1"]) == 0
    assert "as recorded -> 1.34.1: " in capsys.readouterr().out


def test_features_of_another_version_are_compared(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gates = ["--feature-gates", "GenericWorkload=true,GangScheduling=true"]
    assert main(["replay", str(recording), "--kube-version", "1.36", *gates]) in (0, 1)
    assert "as recorded -> 1.36: " in capsys.readouterr().out
    assert main(["replay", str(recording), *gates]) == 2
    assert "no such feature gate" in capsys.readouterr().err


def test_the_prompt_reads_a_moment(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(recording), "--attach", "--to", "large", "-c", "get nodes", "-c", "where"]) == 0
    out = capsys.readouterr().out
    assert "n4 " in out
    assert "before the attempt of default/large" in out
