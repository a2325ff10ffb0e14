"""Tests of `kschedd run --mirror` and `--schedule`, and the flags that can be combined with them."""

import pytest

from kschedd.cli import main


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(["--kubeconfig", "x"], "--kubeconfig requires --mirror or --schedule", id="alone"),
        pytest.param(["--mirror", "--state", "x"], "--state does not go with --mirror", id="state"),
        pytest.param(["--mirror", "--from", "x"], "--from does not go with --mirror", id="dump"),
        pytest.param(["--mirror", "here", "--record", "x"], "--record does not go with --mirror", id="recording"),
        pytest.param(["--mirror", "--kube-api-qps", "5"], "--kube-api-qps requires --schedule", id="rate"),
        pytest.param(["--kube-api-burst", "5"], "--kube-api-burst requires --schedule", id="burst"),
        pytest.param(["--mirror", "--time", "virtual"], "--time does not go with --mirror", id="time"),
    ],
)
def test_flags_that_do_not_go_with_it(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *words]) != 0
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(["--mirror"], "--mirror and --schedule exclude each other", id="mirror"),
        pytest.param(["--state", "x"], "--state does not go with --schedule", id="state"),
        pytest.param(["--from", "x"], "--from does not go with --schedule", id="dump"),
        pytest.param(["--record", "x"], "--record does not go with --schedule", id="recording"),
        pytest.param(["--time", "virtual"], "--time does not go with --schedule", id="time"),
        pytest.param(["--without", "scheduler"], "--schedule excludes --without scheduler", id="scheduler"),
        pytest.param(["--kube-api-qps", "0"], "a number except 0 is allowed", id="no-rate"),
        pytest.param(["--kube-api-qps", "nan"], "a number except 0 is allowed", id="no-number"),
        pytest.param(["--kube-api-burst", "0"], "a number from 1 to 1000000 is allowed", id="no-burst"),
        pytest.param(["--leader-elect", "perhaps"], "allowed are true and false", id="no-boolean"),
    ],
)
def test_flags_that_do_not_go_with_scheduling(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status: object = main(["run", "--schedule", *words])
    except SystemExit as wrong:
        status = wrong.code
    assert status != 0
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--mirror"], ["--schedule"]])
def test_a_kubeconfig_that_is_not_there_ends_either(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *words, "--kubeconfig", "/nowhere", "--socket", "s"]) != 0
    assert "/nowhere: cannot be read: there is no such file" in capsys.readouterr().err
