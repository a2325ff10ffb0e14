"""Tests of the REPL at a terminal with a daemon: the screen after each input."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kschedd.rpc.blocking import BlockingClient
from tests.repl.live_daemon import LiveDaemon, live_daemon
from tests.repl.screens import Console, console

PROMPT = "kschedd ❯"  # noqa: RUF001 - the sign of a prompt
CLUSTER = (
    """
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
""",
    """
apiVersion: v1
kind: Pod
metadata: {name: web-0}
spec: {containers: [{name: a, image: i, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: big-0}
spec: {containers: [{name: a, image: i, resources: {requests: {cpu: "64"}}}]}
""",
)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveDaemon]:
    """Run a daemon with two nodes, a running pod and an unschedulable one."""
    with live_daemon(tmp_path_factory.mktemp("daemon")) as live, BlockingClient(live.socket, timeout=180) as client:
        nodes, pods = CLUSTER
        client.call("objects.apply", manifests=nodes)
        live.until_idle()
        client.call("objects.apply", manifests=pods)
        live.until_idle()
        yield live


@pytest.fixture(scope="module")
def daemon(live: LiveDaemon) -> str:
    """Its socket."""
    return live.socket


@pytest.fixture(scope="module")
def kept(daemon: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(["repl", "--socket", daemon], tmp_path_factory.mktemp("repl")) as shown:
        shown.wait_for(PROMPT, "nodes 2")
        yield shown


@pytest.fixture
def repl(kept: Console) -> Console:
    """Yield a console that several tests share, since it starts slowly; its screen is empty."""
    kept.ready()
    kept.type("\x0c")
    kept.wait_match(rf"\A{PROMPT}$")
    return kept


@pytest.fixture
def own(daemon: str, tmp_path: Path) -> Iterator[Console]:
    """Yield a console for a test that ends it, or changes its terminal."""
    with console(["repl", "--socket", daemon], tmp_path) as shown:
        shown.wait_for(PROMPT, "nodes 2")
        yield shown


def _leave(repl: Console) -> None:
    repl.type("\x15exit\r")
    assert repl.ends() == 0


def test_states_are_completed_and_faults_are_told(repl: Console) -> None:
    repl.ready()
    repl.type_until("explain ", "^ +big-0")
    assert "web-0" not in repl.text
    repl.type("\x15gte po")
    repl.wait_for('unknown command "gte"; did you mean "get"?')
    repl.type("\x15get pods --outptu")
    repl.wait_for('unknown flag --outptu; did you mean "--output"?')
    repl.type("\x15")
    repl.type_until("taint node-b ", "gpu:NoSchedule-")
    repl.type("\x15")


def test_pipes_files_and_the_shell(repl: Console, tmp_path: Path) -> None:
    repl.line(f"get nodes -o name | tr a-z A-Z; get pods -o name > {tmp_path}/pods")
    repl.wait_for("NODE/NODE-B")
    repl.line(f"! wc -l < {tmp_path}/pods")
    repl.wait_match("^2$")
    repl.line("get pods | sh -c 'exit 4'")
    repl.wait_for("(sh ended with status 4)")
    repl.type("\x15")


def test_ctrl_c_ends_only_what_runs(own: Console) -> None:
    own.line("get nodes | sh -c 'cat; exec sleep 1000'")
    own.wait_for("node-b ")
    own.type("\x03")
    own.wait_for("was ended by SIG")  # by itself, or by the signal that follows Ctrl-C
    own.line("get pods -w")
    own.wait_for("big-0")
    own.type("\x03")
    own.wait_for("(cancelled)")
    own.line("! echo before; exec sleep 1000")
    own.wait_match("^before$")
    own.type("\x03")
    own.wait(lambda: own.text.count("was ended by SIG") == 2, "the end of the second command")
    own.line("get pods -o name")
    own.wait_for("pod/web-0")
    own.ready()
    own.type("half a line")
    own.wait_for("half a line")
    own.type("\x03")
    own.ready()
    own.type("\x04")
    assert own.ends() == 0
    assert "The daemon keeps running." in own.text


def test_destructive_commands_ask_first(repl: Console) -> None:
    repl.line("apply -f -")
    repl.wait_for("...")
    repl.type("apiVersion: v1\rkind: ConfigMap\rmetadata: {name: doomed}\r.\r")
    repl.wait_for("configmap/doomed created")
    repl.line("delete configmaps --all")
    repl.wait_for("Delete all configmaps in namespace default? [y/N]")
    repl.type("n\r")
    repl.wait_for("nothing was changed.")
    repl.line("delete configmaps --all --dry-run")
    repl.wait_for("deleted from default namespace (dry run)")
    repl.line("drain node-a")
    repl.wait_for("Evict the pods of node-a? [y/N]")
    repl.type("\x03")
    repl.wait(lambda: repl.text.count("nothing was changed.") == 2, "the end of the second question")
    repl.line("delete configmaps --all --yes")
    repl.wait_match(r'configmap "doomed" deleted from default namespace$')
    repl.type("\x15")


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
    repl.type("\x15")


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
    repl.type("\x15")


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
        repl.type("get pods -o nameX\x1b")  # Escape enters vi's navigation mode, in which x deletes
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


def test_the_dashboard(own: Console) -> None:
    own.line("top")
    own.wait_for("nodes by cpu requested: 12% of all", "node-a", "25%", "default/big-0 no node")
    own.wait_for("node-a  cpu 1/4")
    own.type("r")
    own.wait_for("nodes by memory requested")
    own.type("\r")
    own.wait_for("pods of node-a", "default/web-0  Running")
    own.type("\r")
    own.wait_for("Name:             web-0")
    own.type("e")
    own.wait_for("explain default/web-0", "node-a")
    own.type("qqq")
    own.wait_for("latest decisions")
    own.type("u")
    own.wait_for("pods without a node, by cause", "default/big-0  ")
    own.type("e")
    own.wait_for("explain default/big-0", "Insufficient cpu")
    own.resize(40, 12)
    own.wait_match(r"─ explain default/big-0")
    own.type("q\x1b")
    own.wait_for("by memory requested")
    own.type("q")
    own.wait_for(PROMPT)
    _leave(own)


def test_what_follows_the_cluster_comes_back_with_the_daemon(tmp_path: Path) -> None:
    with ExitStack() as first, ExitStack() as shown, ExitStack() as second:
        live = first.enter_context(live_daemon(tmp_path))
        repl = shown.enter_context(console(["repl", "--socket", live.socket], tmp_path))
        repl.wait_for(PROMPT, "nodes 0")
        repl.line("dashboard")
        repl.wait_for("latest decisions", "0 nodes")
        first.close()
        repl.wait_for("NO DAEMON: waiting for it")
        second.enter_context(live_daemon(tmp_path))
        with BlockingClient(live.socket, timeout=180) as client:
            client.call("objects.apply", manifests=CLUSTER[0])
        repl.wait_for("kschedd │ 2 nodes", "node-a", "node-b")
        assert "The daemon" not in repl.text
        repl.type("q")
        repl.wait_for("The daemon has gone", "is back.", PROMPT)
        repl.line("get nodes -w -o name")
        repl.wait_for("node/node-b")
        second.close()
        repl.wait_for("The daemon has gone")
        second.enter_context(live_daemon(tmp_path))
        repl.wait_for(": what changed in between is not known")  # also if the daemon stopped before the watch began
        with BlockingClient(live.socket, timeout=180) as client:
            client.call("objects.apply", manifests=CLUSTER[0].replace("node-a", "node-c"))
        repl.wait_for("node/node-c")
        assert "Interrupted" not in repl.text
        repl.type("\x03")
        repl.wait_for("(cancelled)")
        _leave(repl)


@pytest.mark.parametrize(
    ("environment", "columns", "prompt"),
    [
        pytest.param({"TERM": "dumb"}, 80, PROMPT, id="dumb"),
        pytest.param({"LC_ALL": "C", "NO_COLOR": "1"}, 40, "kschedd >", id="narrow-without-unicode-and-color"),
    ],
)
def test_poor_terminals(daemon: str, tmp_path: Path, environment: dict[str, str], columns: int, prompt: str) -> None:
    with console(["repl", "--socket", daemon], tmp_path, columns=columns, environment=environment) as repl:
        repl.wait_for(prompt)
        repl.line("get pods -o name")
        repl.wait_for("pod/web-0")
        repl.line("gte")
        repl.wait_for('unknown command "gte"')
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
    repl.type("\x15")


def test_breakpoints_and_forks_are_completed(repl: Console) -> None:
    repl.line("break add --pod nobody --point bind; break add --pod nobody --outcome error")
    repl.wait_for("breakpoint 2: ")
    repl.line("fork spare; fork second")
    repl.wait_for("fork second: ")
    repl.ready()
    repl.type_until("break delete ", r"^ +1$\n^ +2$")
    repl.type("1 \t")  # the only other one
    repl.wait_for("break delete 1 2")
    repl.type("\r")
    repl.wait_for("breakpoint 2 deleted")
    repl.ready()
    repl.type_until("discard ", r"^ +spare$\n^ +second$")
    repl.type("sp\t")
    repl.wait_for("discard spare")
    repl.type("\t")
    repl.wait_for("discard spare second")
    repl.type("\r")
    repl.wait_for("fork second discarded")
    repl.line("break; forks")
    repl.wait_for("No breakpoints.", "No forks.")


def test_an_until_that_never_comes_ends_with_ctrl_c_and_the_state_is_whole(repl: Console, live: LiveDaemon) -> None:
    repl.line("until 'nodes == 77'")
    live.until_running("nodes == 77")
    repl.type("\x03")
    repl.wait_for("(cancelled)")
    repl.line("pause")
    repl.wait_for("Stopped (paused)")
    repl.line("create -f -")
    repl.wait_for("...")
    repl.type("{apiVersion: v1, kind: Pod, metadata: {name: later}, spec: {containers: [{name: a, image: i}]}}\r.\r")
    repl.wait_for("pod/later created")
    repl.line("step")
    repl.wait_for("Stopped (step)")
    repl.line("get pod later -o jsonpath='{.spec.nodeName}'")
    repl.wait_match("^node-a")
    repl.line("resume")
    repl.wait_for("Scheduling runs.")
    repl.line("delete pod later --grace-period 0 --force")
    repl.wait_for('pod "later"')


def test_a_daemon_that_goes_and_comes_back_is_told(tmp_path: Path) -> None:
    with ExitStack() as daemon:
        socket = daemon.enter_context(live_daemon(tmp_path)).socket
        with console(["repl", "--socket", socket], tmp_path) as repl:
            repl.wait_for(PROMPT)
            daemon.close()
            repl.wait_for("The daemon has gone", "no daemon: waiting to reconnect")
            repl.line("get nodes")
            repl.wait_for("error: no daemon at")
            daemon.enter_context(live_daemon(tmp_path))
            repl.wait_for("is back.")
            repl.line("get namespaces -o name")
            repl.wait_for("namespace/kube-system")
            _leave(repl)
