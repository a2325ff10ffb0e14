"""Tests of `kschedd plugin new|check`: generated files work, and faults are reported."""

import subprocess
import sys
from pathlib import Path

import pytest

from kschedd.cli import main

BROKEN = '''
class Moody:
    """Scores differ at every call."""

    name = "Moody"
    calls = 0

    def score(self, state, pod, node):
        Moody.calls += 1
        return Moody.calls % 101
'''


def test_a_new_plugin_passes_its_own_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugin", "new", "GPUNodes", "--folder", str(tmp_path / "made")]) == 0
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        "gpu_nodes.py",
        "gpu_nodes.yaml",
        "test_gpu_nodes.py",
    ]
    assert "run it:  kschedd run --plugin" in capsys.readouterr().out
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not rules", "test_gpu_nodes.py"]
    ended = subprocess.run(command, cwd=tmp_path / "made", capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout


def test_its_profile_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["plugin", "new", "Few", "--folder", str(tmp_path)])
    capsys.readouterr()
    cluster = Path(__file__).parents[2] / "examples" / "clusters" / "three-nodes.yaml"
    plugin, config = str(tmp_path / "few.py"), str(tmp_path / "few.yaml")
    assert main(["simulate", "-f", str(cluster), "--plugin", plugin, "--config", config]) == 0
    assert "3 nodes" in capsys.readouterr().out


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "few.yaml").write_text("mine")
    assert main(["plugin", "new", "Few", "--folder", str(tmp_path)]) == 1
    assert "few.yaml: already exist; nothing was written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["few.yaml"]


@pytest.mark.parametrize("name", ["few", "", "Few-Pods", "Few Pods", "../Few", "1Few"])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugin", "new", name, "--folder", str(tmp_path)]) == 1
    assert "is not a plugin name: expected a capital letter, then letters and digits" in capsys.readouterr().err


def test_the_name_of_a_built_in_plugin_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugin", "new", "NodeResourcesFit", "--folder", str(tmp_path)]) == 1
    assert "NodeResourcesFit is a built-in plugin; choose another name" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_rules_that_are_broken_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "moody.py"
    file.write_text(BROKEN)
    assert main(["plugin", "check", str(file), "--seeds", "2"]) == 1
    out = capsys.readouterr().out
    assert "Moody: 11 of 13 rules kept in 2 random clusters" in out
    assert "remembered-equals-plain: seed 0: " in out
    assert (
        "says-the-same-twice: seed 0: Require that the plugin returns the same result again if nothing has changed."
        in out
    )


def test_a_plugin_that_raises_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "raising.py"
    file.write_text(
        "class Raising:\n    name = 'Raising'\n    def filter(self, state, pod, node):\n        raise OSError('gone')\n"
    )
    assert main(["plugin", "check", str(file), "--seeds", "1"]) == 1
    assert "says-the-same-twice: raised OSError: gone" in capsys.readouterr().out


def test_an_answer_of_a_wrong_type_is_told_as_by_a_scheduler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "class Mine:\n    name = 'Mine'\n    def filter(self, state, pod, node):\n        return False\n"
        "    def score(self, state, pod, node):\n        return 0.5\n"
    )
    assert main(["plugin", "check", str(file), "--seeds", "1"]) == 1
    out = capsys.readouterr().out
    assert "rejects-with-a-rejection: seed 0: filter returned False; a Status or None is expected" in out
    assert "scores-within-range: seed 0: score returned 0.5; an int from 0 to 100 is expected" in out


def test_a_method_that_is_named_like_one_that_is_called_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    methods = "    def fliter(self, state, pod, node): ...\n    def preFilter(self, state, pod, cluster): ...\n"
    file.write_text(f"class Mine:\n    name = 'Mine'\n{methods}    def limit(self): ...\n")
    assert main(["plugin", "check", str(file)]) == 2
    err = capsys.readouterr().err
    assert "none of the methods by which a plugin takes part, but fliter (filter?), preFilter (pre_filter?)\n" in err
    file.write_text(f"{file.read_text()}    def score(self, state, pod, node):\n        return 1\n")
    assert main(["plugin", "check", str(file), "--seeds", "1"]) == 0
    answer = "never called, and named like what is: fliter (filter?), preFilter (pre_filter?)"
    assert answer in capsys.readouterr().out


def test_a_file_that_cannot_be_loaded_is_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("import nothing_of_that_name\n")
    assert main(["plugin", "check", str(file)]) == 2
    assert "cannot be imported" in capsys.readouterr().err


PICKY = '''
class Picky:
    """Takes so many pods as its arguments say, which have no default."""

    name = "Picky"

    def __init__(self, most):
        self.most = most

    @classmethod
    def from_args(cls, args, handle):
        return cls(args.values["most"])

    def score(self, state, pod, node):
        return min(self.most, 100)
'''
PICKY_PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig: [{name: Picky, args: {most: 3}}]
  plugins: {score: {enabled: [{name: Picky}]}}
"""


def test_arguments_are_those_of_a_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin, config = tmp_path / "picky.py", tmp_path / "picky.yaml"
    plugin.write_text(PICKY)
    config.write_text(PICKY_PROFILE)
    assert main(["plugin", "check", str(plugin), "--seeds", "1"]) == 1
    assert "raised KeyError: 'most'" in capsys.readouterr().out
    assert main(["plugin", "check", str(plugin), "--seeds", "1", "--config", str(config)]) == 0
    assert "13 of 13 rules kept" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "why"), [(None, "cannot be read"), ("profiles: 5", "picky.yaml")])
def test_a_profile_that_is_none_is_refused(
    text: str | None, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin, config = tmp_path / "picky.py", tmp_path / "picky.yaml"
    plugin.write_text(PICKY)
    if text is not None:
        config.write_text(text)
    assert main(["plugin", "check", str(plugin), "--config", str(config)]) != 0
    assert why in capsys.readouterr().err
