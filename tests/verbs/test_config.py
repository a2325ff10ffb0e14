"""Tests of the verbs `config`, `set` and `undo`; test_live.py tests their effect on a daemon."""

from pathlib import Path

import pytest

from kschedd.cli import main
from tests.verbs.conftest import Typed

OLD = """\
apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
parallelism: 4
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.yaml"
    path.write_text(OLD)
    return path


def test_a_right_file_is_checked_without_a_daemon(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", "-f", str(old)]) == 0
    assert capsys.readouterr().out == f"{old}: valid; defaults are those of v1.22\n"


def test_a_wrong_file_is_refused_with_all_that_is_wrong(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old.write_text(OLD + "profile: []\npodMaxBackoffSeconds: 0\n")
    assert main(["config", "check", "-f", str(old)]) == 1
    written = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1:3] for line in written] == [
        [f"{old}:4", "$.profile"],
        [f"{old}:5", "$.podMaxBackoffSeconds"],
    ]


def test_a_file_is_converted_without_a_daemon(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "convert", "-f", str(old)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("apiVersion: kubescheduler.config.k8s.io/v1\n")
    assert "parallelism: 4\n" in text
    assert "- name: EBSLimits  # kube-scheduler v1.34 has no such plugin" in text


def test_a_file_is_shown_with_the_origin_of_each_value(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "-f", str(old)]) == 0
    rows = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert ["parallelism", "4", f"{old}:3"] in rows
    assert ["podMaxBackoffSeconds", "10", "default of v1.22"] in rows


def test_plugins_of_ones_own_are_named_by_their_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text('class Mine:\n    name = "Mine"\n    def score(self, state, pod, node): return 1\n')
    file = tmp_path / "config.yaml"
    head = OLD.replace("v1beta1", "v1")
    file.write_text(f"{head}profiles:\n- plugins: {{score: {{enabled: [{{name: Mine}}]}}}}\n")
    assert main(["config", "check", "-f", str(file)]) == 1
    assert "no such plugin" in capsys.readouterr().err
    assert main(["config", "check", "-f", str(file), "--plugin", str(plugin)]) == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("config chek -f x", 'did you mean "check"?'),
        ("config check", "check requires -f FILE"),
        ("config -f x", "-f x requires an action"),
        ("set", "a setting is required, one of: weight PLUGIN N; plugin PLUGIN on|off"),
        ("set wieght A 1", 'did you mean "weight"?'),
        ("set weight A", "set weight PLUGIN N, such as"),
        ("set weight A 1.5", '"1.5": a weight must be a whole number, at least 1'),
        ("set plugin A maybe", '"maybe": expected on or off'),
        ("set plugin A", "set plugin PLUGIN on|off"),
        ("set percentage many", 'percentage: "many": expected a whole number'),
        ("set backoff 1", "set backoff DURATION DURATION, such as: set backoff 1s 30s"),
        ("set args A 5", "args: expected a mapping"),
        ("set args A '{'", "args: neither JSON nor YAML"),
        ("set parallelism 4 --at score", "--at requires `set plugin"),
    ],
)
def test_wrong_use(typed: Typed, line: str, words: str) -> None:
    assert typed(line) == 2
    assert words in typed.err


def test_a_file_that_is_not_there(typed: Typed) -> None:
    assert typed("config check -f no-such-file") == 1
    assert "no-such-file: cannot be read: No such file or directory" in typed.err


def test_the_release_of_the_file_is_a_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    assert main(["config", "check", "-f", str(file), "--kube-version", "1.34"]) == 0
    assert capsys.readouterr().out == f"{file}: valid; defaults are those of v1.34\n"
    assert main(["config", "show", "-f", str(file), "--kube-version", "1.34"]) == 0
    assert "default of v1.34" in capsys.readouterr().out
    assert main(["config", "check", "-f", str(file), "--kube-version", "1.30"]) == 1
    assert 'Kubernetes "1.30" is not supported' in capsys.readouterr().err
    assert main(["config", "check", "-f", str(file), "--kube-version", "1.30", "--upgrade-to", "1.37"]) == 0
    assert main(["config", "--kube-version", "1.34", "show"]) == 2
