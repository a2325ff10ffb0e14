"""Tests of every verb with a running daemon, over its socket, for behavior that the fake daemon does not have.

Each call of a verb is recorded, and each answer is compared with METHODS.md.
"""

import io
import shlex
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
import structlog
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.actors.mailbox import Doorbell
from kschedd.api.pods import Pod
from kschedd.config.versions.kube_versions import DEFAULT
from kschedd.daemon import cluster_actors
from kschedd.framework.status import Code, Status
from kschedd.methods import daemon_methods
from kschedd.rpc.blocking import BlockingClient
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import unix_listener
from kschedd.rpc.sessions.server import Server
from kschedd.service.daemon.process import DaemonState
from kschedd.service.table import Method
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.table import VERBS, run_words
from tests.actors.clusters import comes_to, placed, rejected, with_plugins
from tests.rpc.documented import as_documented

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: node-a, labels: {disk: ssd}}
status: {allocatable: {cpu: 1, memory: 4Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: little, labels: {app: little}}
spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 100m, memory: 64Mi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: big}
spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 2}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: held}
spec: {containers: [{name: a, image: a}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 200m}}}]}
"""


class Hold:
    name: ClassVar = "Hold"

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        return (Status(Code.WAIT), 60.0) if pod.name.startswith("held") else None


def edit_labels(file: Path) -> int:
    """Edit the file as a user who adds a label."""
    file.write_text(file.read_text().replace("  labels:\n", "  labels:\n    edited: by-hand\n"))
    return 0


@attrs.define(eq=False)
class Noting:
    """A client that records its calls, and checks each answer against the method table."""

    client: BlockingClient
    table: dict[str, Method]
    called: list[str]
    watching: Callable[[], object] | None = None

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        self.called.append(method)
        answer = self.client.call(method, *args, **named)
        assert as_documented(self.table[method].answer, answer), method
        return answer

    @contextmanager
    def subscribe(self, method: str, /, **named: Any) -> Iterator[Any]:
        """Yield a stream that ends after two items, so that the test ends."""
        self.called.append(method)
        with self.client.subscribe(method, **named) as stream:
            if self.watching is not None:
                trio.from_thread.run_sync(self.watching)
            yield FirstItems(stream.result, stream, self.table[method].item)


@attrs.frozen(eq=False)
class FirstItems:
    """A stream's first two items, which must match their documentation."""

    result: Any
    _stream: Any
    _answer: Any

    def __iter__(self) -> Iterator[Any]:
        for item in islice(self._stream, 2):
            assert as_documented(self._answer, item)
            yield item


@attrs.define(eq=False)
class Typed:
    """A session that runs lines as a user types them, each over its own connection."""

    cluster: LiveCluster
    daemon: DaemonState
    path: Path
    table: dict[str, Method]
    input: bytes = b""
    called: list[str] = attrs.field(factory=list)
    used: set[str] = attrs.field(factory=set)
    watching: Callable[[], object] | None = None  # called once a stream is open
    out: str = ""
    err: str = ""

    async def __call__(self, line: str) -> int:
        words = shlex.split(line)
        self.used.add(words[0])
        with trio.fail_after(180):
            return await trio.to_thread.run_sync(self._run, words, self.cluster.clock.now())

    def _run(self, words: list[str], now: float) -> int:
        out, err = io.StringIO(), io.StringIO()
        with BlockingClient(self.path, timeout=180) as client:
            session = VerbSession(
                lambda: Noting(client, self.table, self.called, self.watching),
                out.write,
                err.write,
                now=lambda: now,
                sleep=lambda seconds: None,
                read_input=lambda: self.input,
                open_editor=edit_labels,
                outlived=True,
            )
            code = run_words(session, words)
        self.out, self.err = out.getvalue(), err.getvalue()
        return code


async def reported(cluster: LiveCluster, wanted: set[tuple[str, str]]) -> None:
    """Wait until events with these reasons about these pods exist."""
    bell = Doorbell()
    ask = cluster.log.query
    await ask(lambda log: log.subscribers.add(bell))
    while not wanted <= await ask(lambda log: {(each.first.reason, each.first.name) for each in log.events.latest()}):
        assert await bell.wait(), "the cluster ended first"
    bell.close()


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Typed]:
    config, registry = with_plugins(Hold)
    path = tmp_path / "kschedd.sock"
    async with cluster_actors(config, registry=registry, seed=7) as cluster, unix_listener(path) as listener:
        daemon = DaemonState("1.2.3", str(path), cluster.clock.now())
        table = method_table(daemon_methods(cluster, daemon))
        server = Server(table, log=structlog.wrap_logger(structlog.PrintLogger(io.StringIO())))
        daemon.clients = server.describe_clients
        async with trio.open_nursery() as nursery:
            await nursery.start(server.serve, [listener])
            typed = Typed(cluster, daemon, path, table, CLUSTER.encode())
            assert await typed("apply -f -") == 0
            assert typed.err == ""
            await placed(cluster, "little")
            await rejected(cluster, "big")
            await comes_to(cluster.scheduler, lambda owner: len(owner.machine.waiting.pods), 1)  # held
            await reported(cluster, {("Scheduled", "little"), ("FailedScheduling", "big")})
            yield typed
            nursery.cancel_scope.cancel()


# At least one line for each verb, with words that its output must contain. They change the cluster, and run in this
# order.
LINES = [
    ("get pods,nodes -A -o wide", "node-a"),
    ("top nodes", "100m"),
    ("spread disk", "ssd"),
    ("spread disk -o json", '"ssd": '),
    ("top pods", "little"),
    ("describe node node-a", "little"),
    ("describe pod big", "Insufficient cpu"),
    ("create namespace team", "namespace/team created"),
    ("explain big", "fits on no node"),
    ("explain little --node node-a -o json", '"node": "node-a"'),
    ("explain -f -", "default/web-"),
    ("queue", "default/big"),
    ("queue unschedulable -o json", '"place": "unschedulable"'),
    ("queue pod big", "NodeResourcesFit"),
    ("metrics scheduler_pending_pods", "scheduler_pending_pods"),
    ("activate big", "pod/default/big activated"),
    ("waiting", "default/held"),
    ("allow held", "pod/default/held allowed"),
    ("rollout pause deployment/web", "deployment.apps/web paused"),
    ("rollout resume deployment/web", "deployment.apps/web resumed"),
    ("status", "Profiles:"),
    ("weights", "ImageLocality"),
    ("plugins", "FROM"),
    ("costs", "Hold"),
    ("clients", "UNREAD BYTES"),
    ("profile --for 100ms", "TASK OR THREAD"),
    ("status --limits", "WHEN REACHED"),
    ("set weight ImageLocality 3", "1 -> 3"),
    ("config", "profiles[default-scheduler]"),
    ("config show", f"default of {DEFAULT.release}"),
    ("config convert", "kind: KubeSchedulerConfiguration"),
    ("set plugin ImageLocality off", "plugins.score[ImageLocality]: 3 -> -"),
    ("set args InterPodAffinity '{hardPodAffinityWeight: 5}'", '{} -> {"hardPodAffinityWeight": 5}'),
    ("set percentage 40", "percentageOfNodesToScore: 0 -> 40"),
    ("set backoff 2s 20s", "podMaxBackoffSeconds: 10 -> 20"),
    ("set parallelism 4", "parallelism: 16 -> 4"),
    ("set flush 1m", "podMaxInUnschedulablePodsDuration: 300s -> 60s"),
    ("set profile other on", "profiles[other]: added"),
    ("set profile other off", "profiles[other]: removed"),
    ("config changes", "profile-off other"),
    ("config show", "change 3"),
    ("undo", "undone: profile-off other"),
    ("config undo", "undone: profile-on other"),
    ("decisions", "default/little"),
    ("decisions big -o json", '"node": null'),
    ("events", "FailedScheduling"),
    ("events pod/big", "Insufficient cpu"),
    ("logs little", "Scheduled"),
    ("can-i get /healthz --as bob", "yes"),
    ("api-resources", "poddisruptionbudgets"),
    ("watch --times 1 get pods", "little"),
    ("get pods -L app -l app=little --no-headers", "little"),
    ("get pods little -o custom-columns=N:.metadata.name,ON:.spec.nodeName", "little   node-a"),
    ("get pods -l app=little -o jsonpath-as-json='{.items[*].metadata.name}'", '"little"'),
    ("wait --for=condition=PodScheduled pod/little --timeout 0", "pod/little condition met"),
    ("wait --for=jsonpath='{.spec.nodeName}'=node-a pod little --timeout 0", "pod/little condition met"),
    ("expect pod little on node node-a", ""),
    ("expect pod big pending because 'Insufficient cpu' -o json", '"met": true'),
    ("run by-hand --image a:1 --labels app=hand --port 80", "pod/by-hand created"),
    ("expose pod by-hand --target-port 8080", "service/by-hand exposed"),
    ("create pdb guard --selector app=hand --min-available 1 --dry-run", "poddisruptionbudget.policy/guard created"),
    ("create cronjob nightly --image a:1 --schedule '0 3 * * *' --dry-run=server", "created (server dry run)"),
    ("create job once --image a:1 -o name -- sleep 5", "job.batch/once"),
    ("create quota small --hard pods=10 --dry-run=client -o yaml", "kind: ResourceQuota"),
    ("set image deployment/web a=b:2", "deployment.apps/web image updated"),
    ("set resources deployment web --limits memory=1Gi", "deployment.apps/web resource requirements updated"),
    ("set env deployment/web A=1 B=2", "deployment.apps/web env updated"),
    ("set env deployment/web A-", "deployment.apps/web env updated"),
    ("set env deployment/web --list", "# Deployment web, container a\nB=2\n"),
    ("explain pod.spec.nodeName", "FIELD: nodeName <string>"),
    ("label pod little tier=web", "labeled"),
    ("annotate pod little note=x", "annotated"),
    ("taint node node-a a=b:NoSchedule", "tainted"),
    ("cordon node-a", "cordoned"),
    ("uncordon node-a", "uncordoned"),
    ("node stop node-a", "node/node-a stopped"),
    ("node start -l disk=ssd", "node/node-a started"),
    ("node initialize node-a", "node/node-a already initialized"),
    ("node pressure node-a pid off", "node/node-a is not short of pid"),
    ("node add node-a --count 2 --prefix more", "node/more-2 created"),
    ("delete node more-1 more-2 --yes", 'node "more-2" deleted'),
    ("evict little --dry-run", "pod/little evicted (server dry run)"),
    ("drain node-a --force --dry-run", "node/node-a drained (server dry run)"),
    ("fork what-if", "fork what-if: 1 nodes"),
    ("in what-if cordon node-a", "node/node-a cordoned"),
    ("in what-if node add node-a --count 20", "node/node-a-20 created"),
    ("in what-if advance 5m", "what-if: 5m after it was created"),
    ("in what-if rest", "what-if: "),
    ("in what-if get pods -o wide", "little"),
    ("fork deeper --of what-if", "fork deeper of what-if"),
    ("forks", "what-if   <cluster>"),
    ("forks -o json", '"name": "deeper"'),
    ("export what-if", "unschedulable: true"),
    ("discard --all", "fork deeper discarded"),
    ("plan cordon node-a", "~ node node-a: cordoned"),
    ("plan --limit 3 -o json label node node-a x=y", '"other labels"'),
    ("taint node node-a a-", "untainted"),
    ("scale deployment web --replicas 1", "0 -> 1"),
    ("patch deployment web -p '{spec: {replicas: 0}}'", "patched"),
    ("load --how", "kubectl get -A"),
    ("save -", '"kind": "List"'),
    ("report - --redact", "<!doctype html>"),
    ("delete pod big", "deleted"),
    ("pause", "Stopped (paused): between two attempts."),
    ("break add --pod nobody --node node-a --plugin-name NodeName --ignore 1", "breakpoint 1: --pod default/nobody"),
    ("break add --pod debugged --outcome scheduled --if 'attempt == 1' -o json", '"hits": 0'),
    ("break disable 1", "breakpoint 1 disabled"),
    ("break", "--outcome scheduled --if 'attempt == 1'"),
    ("run debugged --image a:1", "pod/debugged created"),
    ("next point", "default/debugged before preFilter"),
    ("next", "default/debugged before "),
    ("until pod debugged", "default/debugged before "),
    ("where -o json", '"narrowed_to"'),
    ("where --nodes 5", "Attempt:"),
    ("score node-a NodeResourcesFit 7", "NodeResourcesFit gives node-a 7 in this attempt"),
    ("veto node-a", "default/debugged does not go to node-a in this attempt"),
    ("force node-a", "default/debugged goes to node-a when the attempt goes on"),
    ("until 1000 pods", "Stopped (breakpoint 2): default/debugged, the attempt has chosen node-a."),
    ("drop", "default/debugged goes back to the queue"),
    ("break delete --all", "breakpoint 2 deleted"),
    ("step", "Stopped (step): between two attempts."),
    ("queue move debugged unschedulable", "default/debugged moved to unschedulable"),
    ("resume", "Scheduling runs."),
    ("time virtual", "virtual: it stands still"),
    ("time", "virtual"),
    ("advance 2s", ""),
    ("stop --yes", "stopping"),
]


#: Verbs that other tests use.
ELSEWHERE = frozenset(
    (
        *("capacity", "compare", "deschedule", "diff", "edit", "fork diff", "nodes-needed", "record", "reject"),
        *("consolidate", "reload", "remove-node", "replace", "scale-up", "web"),
    )
)


async def test_every_verb_is_understood_and_answered_as_documented(live: Typed) -> None:
    for line, words in LINES:
        assert await live(line) == 0, (line, live.err)
        assert words in live.out, line
    assert live.daemon.stop.is_set()
    untried = {verb.name for verb in VERBS} - live.used - ELSEWHERE
    assert untried == set()


async def test_a_waiting_pod_is_rejected(live: Typed) -> None:
    assert await live("reject held --reason 'not today'") == 0
    assert "not today" in await rejected(live.cluster, "held")
    assert await live("allow little") == 1
    assert "does not wait at Permit" in live.err


async def test_the_address_of_the_page_is_printed_if_it_is_served(live: Typed) -> None:
    assert await live("web") == 1
    assert "start it with `kschedd run --web`" in live.err
    live.daemon.page = lambda user: "http://127.0.0.1:8001/web/"
    assert await live("web") == 0
    assert live.out == "http://127.0.0.1:8001/web/\n"
    assert await live("web -o json") == 0
    assert '"url": "http://127.0.0.1:8001/web/"' in live.out


async def test_a_file_that_the_daemon_was_not_started_with_is_not_read(live: Typed) -> None:
    assert await live("reload elsewhere.py") == 1
    assert "elsewhere.py: is no plugin file of this daemon" in live.err


async def test_status_counts_those_that_are_bound(live: Typed) -> None:
    await live("status")
    assert "On the way: 1 at Permit\n" in live.out
    assert "Scheduled:  1 pod since the start\n" in live.out
    assert "Pods:       2 bound or being bound\n" in live.out
    await live("allow held")
    await placed(live.cluster, "held")
    with trio.fail_after(180):
        await live("status")
        while "On the way" in live.out:  # the pod's node is set before its binding cycle ends
            await live("status")
    assert "Scheduled:  2 pods since the start\n" in live.out


async def test_a_failed_attempt_says_how_many_nodes_it_looked_at(live: Typed) -> None:
    await live("decisions big")
    assert live.out.splitlines()[1].split()[:5][2:] == ["1", "<none>", "0/1"]


async def test_an_added_node_has_the_kubelet_version_of_the_copied_node(live: Typed) -> None:
    old = b"{apiVersion: v1, kind: Node, metadata: {name: old}, status: {nodeInfo: {kubeletVersion: v1.34.2}}}"
    live.input = old
    assert await live("apply -f -") == 0
    assert await live("node add old --count 2") == 0
    assert await live("get nodes old-1 old-2 -o 'jsonpath={.items[*].status.nodeInfo.kubeletVersion}'") == 0
    assert live.out.strip() == "v1.34.2 v1.34.2"


async def test_decisions_of_a_namespace(live: Typed) -> None:
    await live("decisions -n default")
    assert "default/big" in live.out
    await live("decisions -n other")
    assert "default/big" not in live.out + live.err


async def test_explain_of_a_name_that_means_something_else_names_it(live: Typed) -> None:
    live.input = b"{apiVersion: v1, kind: Pod, metadata: {name: pvc}, spec: {containers: [{name: a, image: a}]}}"
    assert await live("apply -f -") == 0
    assert await live("explain pvc") == 0
    assert live.out.startswith("KIND:       PersistentVolumeClaim\n")
    assert live.err == "Note: there is a pod of that name: explain pod/pvc\n"
    assert await live("explain node-a") == 1
    assert live.err.endswith("; there is a node of that name: node/node-a\n")


async def test_a_step_without_a_pod_to_schedule_says_when_scheduling_stops(live: Typed) -> None:
    await live("allow held")
    await placed(live.cluster, "held")
    assert await live("step") == 0
    assert live.out == "No pod is ready: scheduling stops after the next attempt; `resume` cancels this.\n"
    await live("resume")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("spread dsk", 'error: no node has the label "dsk"; did you mean "disk"?'),
        ("queue big", "; a pod: queue pod big\n"),
        ("node delete node-a", 'node: unknown command "delete"; `delete node NAME` deletes nodes'),
        ("node add", "to copy; other nodes: apply -f NODE.yaml"),
        ("create pod p --image a", "; `run NAME --image IMAGE` creates a pod"),
        ("create node n", "; `node add NODE --count N` copies a node"),
        ("capacity web", "give either KIND/NAME of a workload or -f FILE; such as deployment/web"),
        ("drain node-a --timeout 5", 'missing unit in duration "5"; expected a duration such as 30s or 5m'),
    ],
)
async def test_a_wrong_usage_is_answered_with_the_right_one(live: Typed, line: str, answer: str) -> None:
    assert await live(line) == 2
    assert answer in live.err


async def test_explain_a_pod_beside_the_one_of_its_name(live: Typed) -> None:
    live.input = CLUSTER.split("---\n")[2].encode()
    assert await live("explain -f -") == 0
    assert "\ndefault/big-" in live.out
    assert "fits on no node" in live.out


SHOP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchExpressions: [{key: app, operator: In, values: [shop]}]}
  template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: a, image: a}]}}
"""


async def test_explain_a_workload_by_one_of_its_pods_that_is_on_no_node(live: Typed) -> None:
    assert await live("explain deployment/shop") == 1
    assert 'deployments.apps "shop" not found' in live.err
    live.input = SHOP.encode()
    assert await live("apply -f -") == 0
    assert await live("explain shop") == 1
    assert live.err.endswith("; there is a deployment of that name: deployment/shop\n")
    assert await live("explain pdb/shop -n shop") == 1
    wrong = "pdb/shop is a PodDisruptionBudget; allowed: a pod, a workload, a node or a quota"
    assert f"{wrong}. `describe pdb shop -n shop` shows it" in live.err
    assert await live("explain deploy shop") == 0
    assert live.out.startswith("deployment/shop: 0 of 1 pod scheduled, 1 not created.\n")
    for name, own in (("shop-1", "nodeName: node-a"), ("shop-2", "nodeSelector: {disk: tape}")):
        spec = f"{{{own}, containers: [{{name: a, image: a}}]}}"
        pod = f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{app: shop}}}}, spec: {spec}}}"
        live.input = pod.encode()
        assert await live("apply -f -") == 0
    assert await live("explain deployment/shop") == 0
    assert "\ndefault/shop-2 fits on no node.\n" in live.out


async def test_explain_says_that_a_node_name_names_no_node(live: Typed) -> None:
    spec = b"{nodeName: nod-a, containers: [{name: a, image: a}]}"
    live.input = b"{apiVersion: v1, kind: Pod, metadata: {name: lost}, spec: " + spec + b"}"
    assert await live("explain -f -") == 0
    assert "\ndefault/lost -> nod-a, which does not exist\n" in live.out
    assert await live("apply -f -") == 0
    assert await live("explain lost") == 0
    assert "Cause: default/lost is on nod-a, and there is no such node (node-a is one): nothing runs it." in live.out
    assert "spec.nodeName of default/lost is nod-a, which does not exist" in live.out


async def test_the_schedulers_events_are_objects_too(live: Typed) -> None:
    assert await live("get events") == 0
    head, *rows = live.out.splitlines()
    assert head.split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert any(row.split()[2:5] == ["FailedScheduling", "pod/big", "0/1"] for row in rows)
    await live("get events --field-selector involvedObject.name=little,reason=Scheduled -o name")
    assert live.out.startswith("event/little.")
    name = live.out.strip()
    assert await live(f"get {name} -o jsonpath={{.message}}") == 0
    assert live.out == "Successfully assigned default/little to node-a"
    assert await live("get ev -A -l a=b") == 0
    assert live.out == ""
    assert await live(f"describe {name}") == 0
    assert "Successfully assigned" in live.out


async def test_a_watch_of_events_has_the_schedulers(live: Typed) -> None:
    beginning = trio.Event()
    watcher = Typed(live.cluster, live.daemon, live.path, live.table, watching=beginning.set)
    async with trio.open_nursery() as beside:
        beside.start_soon(watcher, "get events --watch-only -o jsonpath='{.reason} {.involvedObject.name};'")
        await beginning.wait()
        for name in ("later", "latest"):
            spec = "{containers: [{name: a, image: a}]}"
            live.input = f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {spec}}}".encode()
            assert await live("apply -f -") == 0
    assert watcher.out == "Scheduled later;\nScheduled latest;\n"


async def test_a_watch_shows_each_change(live: Typed) -> None:
    beginning = trio.Event()
    watcher = Typed(live.cluster, live.daemon, live.path, live.table, watching=beginning.set)
    async with trio.open_nursery() as beside:
        beside.start_soon(watcher, "get pods -l app=little --watch-only -o jsonpath='{.metadata.labels.n};'")
        await beginning.wait()
        for number in (1, 2):
            assert await live(f"label pod little n={number} --overwrite") == 0
    assert watcher.out == "1;\n2;\n"


async def test_diff_shows_what_apply_would_change(live: Typed) -> None:
    live.input = CLUSTER.replace("app: little}}", "app: small}}").encode()
    assert await live("diff -f -") == 1
    assert "diff -u -N LIVE/v1.Pod.default.little MERGED/v1.Pod.default.little\n" in live.out
    changed = [line for line in live.out.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert [line for line in changed if '"kind"' not in line] == ["-    app: little", "+    app: small"]
    live.input = CLUSTER.encode()
    assert await live("diff -f -") == 0
    assert live.out == ""
    live.input = b"{apiVersion: v1, kind: Pod, metadata: {name: new}, spec: {containers: [{name: a}]}}"
    assert await live("diff -f -") == 2
    assert "image" in live.err


async def test_apply_by_the_server_owns_what_it_states(live: Typed) -> None:
    config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: %s}}"
    live.input = (config % "v").encode()
    assert await live("apply --server-side -f -") == 0
    assert live.out == "configmap/c serverside-applied\n"
    live.input = (config % "w").encode()
    assert await live("apply --server-side --field-manager me -f -") == 1
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.k' in live.err
    assert await live("apply --server-side --field-manager me --force-conflicts -f -") == 0
    assert await live("get cm c -o jsonpath='{.data.k} {.metadata.managedFields}'") == 0
    assert live.out == "w "
    managers = "-o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.fieldsV1}{end}'"
    assert await live(f"get cm c --show-managed-fields {managers}") == 0
    assert live.out == 'me Apply {"f:data":{"f:k":{}}}'
    assert await live("label cm c x=y") == 0
    assert await live("get cm --show-managed-fields -o jsonpath='{.items[*].metadata.managedFields[*].manager}'") == 0
    assert live.out == "me kubectl-label"
    assert await live("apply --force-conflicts -f -") == 2
    assert "--force-conflicts only works with --server-side" in live.err


async def test_edit_sends_what_was_changed_in_the_editor(live: Typed) -> None:
    assert await live("edit pod little") == 0
    assert live.out == "pod/little edited\n"
    assert await live("get pod little -o jsonpath='{.metadata.labels.edited}'") == 0
    assert live.out == "by-hand"


async def test_replace_keeps_or_remakes_the_object(live: Typed) -> None:
    assert await live("get pod little -o jsonpath='{.metadata.uid}'") == 0
    uid = live.out
    assert await live("get pod little -o yaml") == 0
    live.input = live.out.replace("app: little", "app: other").encode()
    assert await live("replace -f -") == 0
    assert live.out == "pod/little replaced\n"
    assert await live("replace -f -") == 1
    assert "the object has been modified" in live.err
    assert await live("get pod little -o jsonpath='{.metadata.labels.app} {.metadata.uid}'") == 0
    assert live.out == f"other {uid}"
    assert await live("replace --force -f -") == 0
    assert live.out == 'pod "little" deleted\npod/little replaced\n'
    assert await live("get pod little -o jsonpath='{.metadata.uid}'") == 0
    assert live.out != uid
