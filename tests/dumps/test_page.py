"""docs/DUMPS.md: its commands work on a dump, and what it shows is what is printed.

The dump is the cluster of examples/demo, as its own `get -A -o yaml` prints it. KSCHEDD_REWRITE_SCENARIOS=1 writes the
page anew; the difference is for review.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from kschedd.cli import main
from kschedd.scenarios.commands import ScenarioCluster

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "DUMPS.md"
KINDS = "namespaces,nodes,pods,replicasets,deployments,priorityclasses,configmaps"
_SCREEN = re.compile(r"(?<=```console\n)\$ kschedd ([^\n]*)\n.*?(?=```)", re.DOTALL)
_CHECK = re.compile(r"<!-- kschedd check -f (\S+): (\d) -->\n```markdown\n.*?```", re.DOTALL)
_LINE = re.compile(r"^    kschedd (.*?)\s+#", re.MULTILINE)
ASIDE = ("mcp", "run")  # serve until they are ended
VERBS = ("explain", "plan", "capacity", "save")


def demo() -> ScenarioCluster:
    cluster = ScenarioCluster(ROOT / "examples")
    answer = cluster.do("apply -f demo", "")
    assert "error" not in answer, answer
    cluster.do("advance 10s", "")
    return cluster


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.yaml"
    file.write_text(demo().do(f"get -A -o yaml {KINDS}", ""))
    return file


def test_its_own_output_is_the_same_cluster_again(dump: Path) -> None:
    again = ScenarioCluster(dump.parent)
    answer = again.do(f"load {dump}", "")
    assert "error" not in answer, answer
    assert "missing" not in answer, answer
    first = demo()
    for kind in ("nodes", "pods", "replicasets", "deployments"):
        columns = "custom-columns=A:.metadata.name,B:.metadata.uid,C:.spec.nodeName,D:.status.phase,E:.spec.replicas"
        assert again.do(f"get {kind} -A -o {columns}", "") == first.do(f"get {kind} -A -o {columns}", "")
    again.do("rest", "")
    assert again.do("get pods -A -o name", "") == first.do("get pods -A -o name", "")


def test_the_page_shows_what_is_printed(dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ScenarioCluster(dump.parent)
    answer = cluster.do(f"load {dump}", "")
    assert "error" not in answer, answer

    def screen(found: re.Match[str]) -> str:
        lines = cluster.do(found[1], "").splitlines()
        return "\n".join([f"$ kschedd {found[1]}", *(line.rstrip() for line in lines), ""])

    def checked(found: re.Match[str]) -> str:
        file = ROOT / "examples" / "ci" / found[1]
        status = main(["check", "--from", str(dump), "-f", str(file), "-o", "markdown"])
        assert status == int(found[2])
        out = capsys.readouterr().out.replace(f"{file.parent}/", "")
        return f"<!-- kschedd check -f {found[1]}: {found[2]} -->\n```markdown\n{out}```"

    text = PAGE.read_text(encoding="utf-8")
    now = _CHECK.sub(checked, _SCREEN.sub(screen, text))
    if os.environ.get("KSCHEDD_REWRITE_SCENARIOS") == "1":
        PAGE.write_text(now, encoding="utf-8")
    assert len(_SCREEN.findall(text)) == 2
    assert len(_CHECK.findall(text)) == 4
    assert now == text


def test_the_commands_of_the_page_work(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(dump.parent)
    cluster = ScenarioCluster(dump.parent)
    cluster.do("save cluster.json.gz", "")  # something to be written over
    cluster.do(f"load {dump}", "")
    (dump.parent / "pod.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}"
    )
    (dump.parent / "deploy").mkdir()
    (dump.parent / "deploy" / "a.yaml").write_text((ROOT / "examples" / "ci" / "fits.yaml").read_text())
    commands = [shlex.split(found.removesuffix("&")) for found in _LINE.findall(PAGE.read_text(encoding="utf-8"))]
    assert cluster.do("save cluster.json.gz --force", "").endswith("objects saved\n")
    assert {words[0] for words in commands} == {"check", "simulate", *ASIDE, *VERBS}
    for words in commands:
        if words[0] in ("check", "simulate"):
            assert main(words) == 0, words
        elif words[0] not in ASIDE:
            more = ["--force"] if words[0] == "save" else []
            answer = cluster.execute(shlex.join([*words, *more]), "")
            assert answer.status in (0, 1), answer.text  # 1: some pod would have no place


def test_the_workflow_and_the_hook_run_what_there_is() -> None:
    for name in ("check-on-pull-request.yaml", "pre-commit-hooks.yaml"):
        text = (ROOT / "examples" / "ci" / name).read_text(encoding="utf-8")
        assert "kschedd check --from cluster.json.gz -f deploy/" in text
        assert "kschedd lint " in text
