"""Completion in shells: the output of `kschedd __complete`, and the scripts that call it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kschedd import cli
from kschedd.commands.shell.completion import SCRIPTS
from kschedd.config.versions.kube_versions import KUBE_VERSIONS
from kschedd.verbs.completing import VERSIONS
from tests.repl.conftest import served  # noqa: F401 - a fixture

ROOT = Path(__file__).parents[2]


def _next(capsys: pytest.CaptureFixture[str], text: str) -> list[str]:
    assert cli.main(["__complete", text]) == 0
    return [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("expl", ["explain"], id="verb"),
        pytest.param("sim", ["simulate"], id="command"),
        pytest.param("get po", ["pods"], id="kind"),
        pytest.param("get pods ", ["web-0", "web-1"], id="live-names"),
        pytest.param("get pods 'web-1' w", ["web-0"], id="live-names-not-taken"),
        pytest.param("get node/", ["node/node-a", "node/node-b"], id="kind-and-name"),
        pytest.param("get pods -l ", ["app"], id="label-keys"),
        pytest.param("get pods -l app=", ["app=web"], id="labels"),
        pytest.param("get pods --no-h", ["--no-headers"], id="flag"),
        pytest.param("describe pod -o", [], id="a-flag-that-the-verb-has-not"),
        pytest.param("top nodes --sort-by ", ["cpu", "memory"], id="choice-of-a-flag"),
        pytest.param("simulate --dec", ["--decisions"], id="flag-of-a-command"),
        pytest.param("run --log-level w", ["warning"], id="choice-of-a-commands-flag"),
        pytest.param("completion ", ["bash", "zsh", "fish"], id="choice-of-a-command"),
        pytest.param("watch get no", ["nodes"], id="watched-verb"),
        pytest.param("plan st", [], id="no-short-names-after-plan-and-no-verbs-that-only-read"),
        pytest.param("simulate --kube-version 1.3", ["1.34.1", "1.34", "1.35"], id="versions"),
        pytest.param("compare --kube-version 1.34,", ["1.34,1.34.1", "1.34,1.34"], id="second-version"),
        pytest.param(f"compare --config {ROOT}/profiles/sp", [f"{ROOT}/profiles/spreading.yaml"], id="configuration"),
        pytest.param("journal re", ["remove", "repair"], id="subcommand"),
        pytest.param("journal verify --", ["--output"], id="flags-of-a-subcommand"),
        pytest.param("plugin n", ["new"], id="subcommand-of-a-group"),
        pytest.param("help ex", ["expect", "explain"], id="help"),
        pytest.param("nonsense ", [], id="nothing-after-what-is-no-verb"),
    ],
)
def test_what_may_come_next(served, capsys, monkeypatch, text: str, words: list[str]) -> None:  # noqa: F811
    monkeypatch.setenv("KSCHEDD_SOCKET", served.path)
    found = _next(capsys, text)
    assert found[: len(words)] == words
    if not words:
        assert found == []


def test_the_versions_are_those_of_the_scheduler() -> None:
    assert VERSIONS == tuple(KUBE_VERSIONS)


def test_the_socket_may_be_said(served, capsys, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setenv("KSCHEDD_SOCKET", "/nowhere")
    assert _next(capsys, "get pods ") == []
    assert cli.main(["__complete", f"--socket {served.path} get pods "]) == 0
    assert capsys.readouterr().out == "web-0\nweb-1\n"


def test_meanings_come_with_a_tab(capsys) -> None:
    cli.main(["__complete", "cord"])
    assert capsys.readouterr().out == "cordon\tMark nodes unschedulable.\n"


def test_scripts_are_printed(capsys) -> None:
    for shell, script in SCRIPTS.items():
        assert cli.main(["completion", shell]) == 0
        assert capsys.readouterr().out == script
    assert cli.main(["completion", "tcsh"]) == 2


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_a_script_is_whole(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run([shell, "-n"], input=SCRIPTS[shell], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "word", "replies"),
    [
        pytest.param("kschedd cord", "cord", ["cordon"], id="verb"),
        pytest.param("kschedd get pods -l app=w", "w", ["web"], id="after-an-equals-sign"),
        pytest.param("kschedd get pods -l app=", "=", ["web"], id="at-an-equals-sign"),
        pytest.param("kschedd get node/", "node/", ["node/node-a", "node/node-b"], id="kind-and-name"),
        pytest.param("kschedd top nodes --sort-by ", "", ["cpu", "memory"], id="an-empty-word"),
    ],
)
def test_bash_replies(served, tmp_path: Path, line: str, word: str, replies: list[str]) -> None:  # noqa: F811
    command = tmp_path / "kschedd"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kschedd "$@"\n')
    command.chmod(0o755)
    # Bash treats the last of COMP_WORDS as the word at the cursor.
    script = SCRIPTS["bash"] + (
        "compopt() { :; }\n"
        f"COMP_LINE='{line}' COMP_POINT={len(line)} COMP_WORDS=(kschedd '{word}') COMP_CWORD=1\n"
        "_kschedd\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "KSCHEDD_SOCKET": served.path}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment)
    assert done.stderr == ""
    assert done.stdout.split() == replies


def test_nobody_looks_into_argparse() -> None:
    private = re.compile(r"\._(actions|option_string_actions|subparsers|action_groups|mutually_exclusive_groups)\b")
    found = [
        str(file.relative_to(ROOT))
        for folder in ("kschedd", "repl")
        for file in (ROOT / folder).rglob("*.py")
        if private.search(file.read_text())
    ]
    assert found == []
