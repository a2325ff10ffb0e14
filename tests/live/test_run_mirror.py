"""`kschedd run --mirror`: with which flags it goes."""

import pytest

from kschedd.cli import main


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(["--kubeconfig", "x"], "--kubeconfig goes with --mirror", id="alone"),
        pytest.param(["--mirror", "--state", "x"], "--state does not go with --mirror", id="state"),
        pytest.param(["--mirror", "--from", "x"], "--from does not go with --mirror", id="dump"),
        pytest.param(["--mirror", "here", "--record", "x"], "--record does not go with --mirror", id="recording"),
        pytest.param(["--mirror", "--time", "virtual"], "--time does not go with --mirror", id="time"),
    ],
)
def test_flags_that_do_not_go_with_it(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *words]) != 0
    assert why in capsys.readouterr().err


def test_a_kubeconfig_that_is_not_there_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--mirror", "--kubeconfig", "/nowhere", "--socket", "s"]) != 0
    assert "/nowhere: cannot be read: there is no such file" in capsys.readouterr().err
