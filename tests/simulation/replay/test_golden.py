"""Tests that recordings by earlier versions of kschedd are replayed with identical decisions, for each release."""

from pathlib import Path

import pytest

from kschedd.config.versions.kube_versions import KUBE_VERSIONS, kube_version
from kschedd.recording.format import FORMAT, MARK, RecordingError
from kschedd.recording.reading import RecordingFile
from tests.corpus.steps import RELEASED
from tests.simulation.replay.golden import GOLDEN, RECORDINGS
from tests.simulation.replay.test_replay import header_of, replayed

FILES = [*(RECORDINGS / f"{name}.rec" for name in GOLDEN), *RELEASED.glob("*/recording.rec")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name if file.stem == "recording" else file.stem)
def test_it_comes_out_as_it_was(file: Path) -> None:
    log, player = replayed(file)
    kept = file.with_suffix(".jsonl").read_text(encoding="utf-8")
    assert kept
    assert log.startswith(kept)
    assert player.ended
    assert player.recording.broken == ""


def test_there_is_one_of_each_version_and_of_nothing_else() -> None:
    assert {path.stem for path in RECORDINGS.iterdir()} == set(GOLDEN)
    drawing = {version.with_random_ties().name for version in KUBE_VERSIONS.values()}  # all drew ties in format 1
    names = {header_of(RECORDINGS / f"{name}.rec").kube_version for name in KUBE_VERSIONS}
    assert {kube_version(name).with_random_ties().name for name in names} == drawing


def test_one_of_a_newer_format_is_refused_in_words(tmp_path: Path) -> None:
    whole = (RECORDINGS / "incident.rec").read_bytes()
    old = MARK + b"1\n"
    assert whole.startswith(old)
    (tmp_path / "new").write_bytes(MARK + b"%d\n" % (FORMAT + 1) + whole[len(old) :])
    with pytest.raises(RecordingError, match=f"is of format {FORMAT + 1}, which is newer than this kschedd"):
        RecordingFile.open(tmp_path / "new")
