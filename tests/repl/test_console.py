"""The REPL at a terminal, beside a daemon: what a user types, and what the screen shows then."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemons import PROGRAM
from tests.repl.screens import Console, console

ROOT = Path(__file__).parents[2]
PROMPT = "kschedd ❯"  # noqa: RUF001 - the sign of a prompt
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: node-a}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Node
metadata: {name: node-b}
spec: {taints: [{key: gpu, effect: NoSchedule}]}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0}
spec: {containers: [{name: a, image: i, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: big-0}
spec: {containers: [{name: a, image: i, resources: {requests: {cpu: "64"}}}]}
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory) -> Iterator[str]:
    """The socket of a daemon with two nodes, a pod that runs and one that fits nowhere."""
    where = tmp_path_factory.mktemp("daemon")
    with (where / "log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(where)], stdout=subprocess.PIPE, stderr=log, cwd=ROOT
        )
    try:
        assert child.stdout is not None
        assert child.stdout.readline().startswith(b"started"), (where / "log").read_text()
        (where / "cluster.yaml").write_text(CLUSTER)
        socket = str(where / "k.sock")
        command = [sys.executable, "-m", "kschedd", "--socket", socket]
        subprocess.run(
            [*command, "apply", "-f", str(where / "cluster.yaml")], check=True, cwd=ROOT, capture_output=True
        )
        waiting = [*command, "wait", "--for=jsonpath={.spec.nodeName}=node-a", "pod/web-0", "--timeout=60s"]
        subprocess.run(waiting, check=True, cwd=ROOT, capture_output=True)
        yield socket
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


@pytest.fixture
def repl(daemon: str, tmp_path: Path) -> Iterator[Console]:
    with console(["repl", "--socket", daemon], tmp_path) as shown:
        shown.wait_for(PROMPT, "nodes 2")
        yield shown


def _leave(repl: Console) -> None:
    repl.type("\x15exit\r")
    assert repl.ends() == 0


def test_states_are_completed_and_faults_are_told(repl: Console) -> None:
    repl.ready()
    repl.type("explain ")
    repl.wait_match("^ +big-0")
    assert "web-0" not in repl.text
    repl.type("\x15gte po")
    repl.wait_for('there is no verb "gte"; did you mean "get"?')
    repl.type("\x15get pods --outptu")
    repl.wait_for('unknown flag --outptu; did you mean "--output"?')
    repl.type("\x15taint node-b ")
    repl.wait_for("gpu:NoSchedule-")
    _leave(repl)


def test_pipes_files_and_the_shell(repl: Console, tmp_path: Path) -> None:
    repl.line(f"get nodes -o name | tr a-z A-Z; get pods -o name > {tmp_path}/pods")
    repl.wait_for("NODE/NODE-B")
    repl.line(f"! wc -l < {tmp_path}/pods")
    repl.wait_match("^2$")
    repl.line("get pods | sh -c 'exit 4'")
    repl.wait_for("(sh ended with status 4)")
    _leave(repl)


def test_ctrl_c_ends_only_what_runs(repl: Console) -> None:
    repl.line("get nodes | sh -c 'cat; exec sleep 1000'")
    repl.wait_for("node-b ")
    repl.type("\x03")
    repl.wait_for("was ended by SIG")  # of its own accord, or by the signal that follows Ctrl-C
    repl.line("get pods -w")
    repl.wait_for("big-0")
    repl.type("\x03")
    repl.wait_for("(cancelled)")
    repl.line("! echo before; exec sleep 1000")
    repl.wait_match("^before$")
    repl.type("\x03")
    repl.wait(lambda: repl.text.count("was ended by SIG") == 2, "the end of the second command")
    repl.line("get pods -o name")
    repl.wait_for("pod/web-0")
    repl.ready()
    repl.type("half a line")
    repl.wait_for("half a line")
    repl.type("\x03")
    repl.ready()
    repl.type("\x04")
    assert repl.ends() == 0
    assert "The daemon goes on." in repl.text


def test_destructive_commands_ask_first(repl: Console) -> None:
    repl.line("apply -f -")
    repl.wait_for("...")
    repl.type("apiVersion: v1\rkind: ConfigMap\rmetadata: {name: doomed}\r.\r")
    repl.wait_for("configmap/doomed created")
    repl.line("delete configmaps --all")
    repl.wait_for("Delete all configmaps in namespace default? [y/N]")
    repl.type("n\r")
    repl.wait_for("Nothing was done.")
    repl.line("delete configmaps --all --dry-run")
    repl.wait_for("deleted from default namespace (dry run)")
    repl.line("drain node-a")
    repl.wait_for("Evict the pods of node-a? [y/N]")
    repl.type("\x03")
    repl.wait(lambda: repl.text.count("Nothing was done.") == 2, "the end of the second question")
    repl.line("delete configmaps --all --yes")
    repl.wait_match(r'configmap "doomed" deleted from default namespace$')
    _leave(repl)


def test_a_manifest_pasted_at_the_prompt_is_offered(repl: Console) -> None:
    repl.ready()
    repl.type("\x1b[200~  apiVersion: v1\r  kind: ConfigMap\r  metadata: {name: pasted}\r\x1b[201~")
    repl.wait_for("Apply the 1 object (ConfigMap) pasted? [y/N]")
    repl.type("y\r")
    repl.wait_for("configmap/pasted created")
    repl.line("apply -f -")
    repl.wait_for("...")
    repl.type("\x1b[200~apiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\x1b[201~\x1b\r")
    repl.wait_for("configmap/second created")
    repl.line("delete cm pasted second")
    repl.wait_for('"second" deleted')
    _leave(repl)


def test_the_history_is_searched_fuzzily(repl: Console) -> None:
    repl.line("get nodes -o name")
    repl.wait_for("node/node-b")
    repl.line("get pods -o wide")
    repl.wait_for("NOMINATED")
    repl.ready()
    repl.type("\x12")
    repl.wait_for("search:")
    repl.type("gnodnam")
    repl.wait_match(r"search: gnodnam\n +get nodes -o name")
    repl.type("\r")
    repl.wait_match(r"❯ get nodes -o name")  # noqa: RUF001 - the sign of a prompt
    repl.type("\r")
    repl.wait(lambda: repl.text.count("node/node-b") == 2, "the output again")
    repl.ready()
    repl.type("\x12zzz")
    repl.wait_for("search: zzz")
    repl.type("\x07")
    repl.wait_without("search:")
    _leave(repl)


def test_editors(daemon: str, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/of-nobody/of-somebody/; s/nothing/pods/" "$1"\n')
    editor.chmod(0o755)
    with console(["repl", "--socket", daemon], tmp_path, environment={"EDITOR": str(editor), "VISUAL": ""}) as repl:
        repl.wait_for(PROMPT)
        repl.line("create configmap of-editor --from-literal owner=of-nobody")
        repl.wait_for("configmap/of-editor created")
        repl.line("edit configmap of-editor")
        repl.wait_for("configmap/of-editor edited")
        repl.line("get configmap of-editor -o jsonpath='{.data.owner}'")
        repl.wait_match("^of-somebody")
        repl.ready()
        repl.type("get nothing -o name\x18\x05")
        repl.wait_for("pod/web-0")
        _leave(repl)


def test_the_rc_file_is_run_and_its_faults_are_told_with_their_lines(daemon: str, tmp_path: Path) -> None:
    rc = tmp_path / "config" / "kschedd" / "replrc"
    rc.parent.mkdir(parents=True)
    rc.write_text("# mine\nmacro mine = get pod $1 -o name\nsetting editng vi\nget podz\nsetting editing vi\n")
    with console(["repl", "--socket", daemon], tmp_path) as repl:
        repl.wait_for(PROMPT)
        assert f"{rc}:3:failed:settingeditngvi" in "".join(repl.text.split())
        assert "kschedd/replrc:4:failed:getpodz" in "".join(repl.text.split())
        repl.line("mine web-0")
        repl.wait_for("pod/web-0")
        repl.ready()
        repl.type("get pods -o nameX\x1b")  # Escape is vi's navigation mode, in which x deletes
        repl.type("x\r")
        repl.wait_for("pod/big-0")
        _leave(repl)


def test_long_output_goes_through_the_pager(daemon: str, tmp_path: Path) -> None:
    environment = {"PAGER": "sed s/^/paged:/"}
    with console(["repl", "--socket", daemon], tmp_path, rows=12, environment=environment) as repl:
        repl.wait_for(PROMPT)
        repl.line("get nodes -o yaml")
        repl.wait_for("paged:kind: List")
        repl.line("setting pager off")
        repl.line("get nodes -o yaml | tail -3")
        repl.wait_match("^kind: List")
        _leave(repl)


def test_the_dashboard(repl: Console) -> None:
    repl.line("top")
    repl.wait_for("nodes by cpu requested: 12% of all", "node-a", "25%", "default/big-0 no node")
    repl.wait_for("node-a  cpu 1/4")
    repl.type("r")
    repl.wait_for("nodes by memory requested")
    repl.type("\r")
    repl.wait_for("pods of node-a", "default/web-0  Running")
    repl.type("\r")
    repl.wait_for("Name:             web-0")
    repl.type("e")
    repl.wait_for("why default/web-0 is where it is", "node-a")
    repl.type("qqq")
    repl.wait_for("latest decisions")
    repl.type("u")
    repl.wait_for("pods without a node", "default/big-0  unschedulable")
    repl.type("e")
    repl.wait_for("why default/big-0 is where it is", "Insufficient cpu")
    repl.resize(40, 12)
    repl.wait_match(r"─ why default/big-0 is where it is")
    repl.type("q\x1b")
    repl.wait_for("by memory requested")
    repl.type("q")
    repl.wait_for(PROMPT)
    _leave(repl)


@pytest.mark.parametrize(
    ("environment", "columns", "prompt"),
    [
        pytest.param({"TERM": "dumb"}, 80, PROMPT, id="dumb"),
        pytest.param({"LC_ALL": "C", "NO_COLOR": "1"}, 40, "kschedd >", id="narrow-without-unicode-and-colour"),
    ],
)
def test_poor_terminals(daemon: str, tmp_path: Path, environment: dict[str, str], columns: int, prompt: str) -> None:
    with console(["repl", "--socket", daemon], tmp_path, columns=columns, environment=environment) as repl:
        repl.wait_for(prompt)
        repl.line("get pods -o name")
        repl.wait_for("pod/web-0")
        repl.line("gte")
        repl.wait_for('did you mean "get"')
        repl.line("help macro")
        repl.wait_for("macro delete pend")
        if prompt != PROMPT:
            assert repl.raw.isascii()
        if "NO_COLOR" in environment:
            assert b"\x1b[31m" not in repl.raw
        if environment.get("TERM") == "dumb":
            repl.line("dashboard")
            repl.wait_for("the dashboard needs a terminal")
            assert b"\x1b" not in repl.raw
        _leave(repl)


def test_garbage_is_survived(repl: Console) -> None:
    repl.ready()
    repl.type("\x1b[200~get \x00\x01\x7f\x1b[2J\udcff\udcfe pods\x1b[201~\r")
    repl.wait_for("error: ")
    repl.ready()
    repl.type("\x1b[99~\x1b[1;9Z\x1bO\x15")
    repl.line("get pods -o name")
    repl.wait_for("pod/web-0")
    _leave(repl)


def test_a_daemon_that_goes_and_comes_back_is_told(tmp_path: Path) -> None:
    def start() -> "subprocess.Popen[bytes]":
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT
        )
        assert child.stdout is not None
        assert child.stdout.readline().startswith(b"started")
        child.stdout.close()
        return child

    child = start()
    try:
        with console(["repl", "--socket", str(tmp_path / "k.sock")], tmp_path) as repl:
            repl.wait_for(PROMPT)
            child.kill()
            child.wait()
            repl.wait_for("The daemon has gone", "no daemon: waiting for it")
            repl.line("get nodes")
            repl.wait_for("error: no daemon at")
            os.unlink(tmp_path / "k.sock")
            child = start()
            repl.wait_for("is back.")
            repl.line("get namespaces -o name")
            repl.wait_for("namespace/kube-system")
            _leave(repl)
    finally:
        child.kill()
        child.wait()
