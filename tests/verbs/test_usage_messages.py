"""Tests of messages about invalid command lines, with the usage that was probably meant."""

import pytest

from kschedd import cli


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("apply app.yaml", '-f/--filename is required; did you mean "apply -f app.yaml"?'),
        ("check app.yaml", 'unexpected argument app.yaml; did you mean "check -f app.yaml"?'),
        ("get pods --wide", 'unknown flag --wide; did you mean "-o wide"?'),
        ("get pods -wide", 'unknown flag -wide; did you mean "-o wide"?'),
        ("get pods --json", 'unknown flag --json; did you mean "-o json"?'),
        ("apply -f", "-f/--filename requires a value"),
        ("journal verfy", 'unknown command "verfy"; did you mean "verify"?'),
        ("plugin lst", 'unknown command "lst"; did you mean "list"?'),
        ("run --ties coin", '--ties "coin": allowed are release, random'),
        ("config chek", 'config: unknown command "chek"; did you mean "check"?'),
        ("config export", "config export is named `config convert`"),
        ("set wieght NodeAffinity 2", 'set: unknown setting "wieght"; did you mean "weight"?'),
        ("debug stpe", 'debug: unknown command "stpe"; did you mean "step"?\n'),
        ("evaluate p.py --time-limit 120", '--time-limit: invalid duration "120": expected a duration such as 30s, 5m'),
        ("node add --cpu 8", "unknown flag --cpu; `node add NODE --count N` copies a node, `apply -f NODE.yaml`"),
        ("create node --count 10", "unknown flag --count; `node add NODE --count N` copies a node"),
        ("advance 5 minutes", 'unexpected argument minutes; did you mean "5m"?'),
        ("advance -5m", 'DURATION|t=TIME "-5m": must not be negative'),
        ("config check c.yaml", 'unexpected argument c.yaml; did you mean "config check -f c.yaml"?'),
        ("run nginx", "unexpected argument nginx; `kschedd run NAME --image IMAGE` creates a pod"),
        ("repl nosuch.txt", "unexpected argument nosuch.txt; `kschedd repl --script FILE` runs"),
        ("apply -k .", "-f/--filename is required; kustomize is not supported"),
        ("why web-0", 'unknown command "why"; `explain POD` names the cause'),
        ("fork delete a", 'fork: unknown command "delete": allowed are '),
        ("advance 5", 'missing unit in duration "5"; expected a duration such as 30s, 5m, 1h30m or 2d'),
    ],
)
def test_the_usage_that_was_meant_comes_first(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words.split()) == 2
    assert f"error: {message}" in capsys.readouterr().err


def test_flags_of_explain_are_checked_before_a_dump_is_loaded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unexpected(options: object) -> None:
        raise AssertionError("the dump was loaded")

    monkeypatch.setattr("kschedd.commands.offline.verb_on_dump.dumped_cluster", unexpected)
    for words, message in (
        ("explain --from", "--from requires a value"),
        ("explain --from dump.json --pendign", 'unknown flag --pendign; did you mean "--pending"?'),
        ("explain web --from dump.json --kube-version 9", '--kube-version: Kubernetes "9" is not supported'),
    ):
        assert cli.main(words.split()) == 2
        assert f"error: {message}" in capsys.readouterr().err
    assert cli.main("explain --from dump.json --help".split()) == 0
    assert "usage: kschedd explain" in capsys.readouterr().out
