"""Tests of wrong arguments and hostile input: an error names the fault, and the cluster stays usable."""

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kschedd import Cluster, KscheddError, RpcError, deployment, node, pod, simulate
from kschedd.sdk.cluster import ClosedClusterError, DumpLoadError

Use = Callable[[Cluster], Any]

CYCLE: list[Any] = []
CYCLE.append(CYCLE)

WRONG: list[tuple[str, Use, type[Exception], str]] = [
    ("a number as manifest", lambda c: c.apply(5), TypeError, "maps, text, paths"),  # type: ignore[arg-type]
    ("bytes", lambda c: c.apply(b"x"), TypeError, "not bytes"),  # type: ignore[arg-type]
    ("a path as text", lambda c: c.apply("web.yaml"), ValueError, r"pass Path\('web.yaml'\)"),
    ("a list in itself", lambda c: c.apply(CYCLE), TypeError, "sequences"),
    ("no such file", lambda c: c.apply(Path("/nonexistent.yaml")), OSError, "No such file"),
    ("no YAML", lambda c: c.apply("a: [b"), KscheddError, "not YAML"),
    ("a negative duration", lambda c: c.advance("-5m"), ValueError, "0 or more"),
    ("no duration", lambda c: c.advance("soon"), KscheddError, "invalid duration"),
    ("not a number", lambda c: c.advance(math.nan), ValueError, "0 or more"),
    ("for ever", lambda c: c.advance(math.inf), ValueError, "0 or more"),
    ("no such pod", lambda c: c.explain("nobody"), KscheddError, 'pods "nobody" not found'),
    ("too many slashes", lambda c: c.explain("a/b/c/d"), ValueError, "kind/name"),
    ("no such method", lambda c: c.call("nothing"), KscheddError, "no method"),
    ("a wrong parameter", lambda c: c.call("objects.get", foo=1), KscheddError, "no such name"),
    ("no verb", lambda c: c.run(" "), ValueError, "a verb is required"),
    ("a negative grace period", lambda c: c.delete("Pod", "a", grace_period_s=-1), KscheddError, "from 0 to"),
    ("a patch of no type", lambda c: c.patch("Pod", "a", 5), KscheddError, "allowed: map"),  # type: ignore[arg-type]
    ("an exception of a plan", lambda c: c.plan(lambda fork: 1 // 0), ZeroDivisionError, "by zero"),
    ("pickling", pickle.dumps, TypeError, "SimulationSpec"),
    ("no command", lambda c: c.run(5), TypeError, "command: 5: str is required, not int"),  # type: ignore[arg-type]
    ("no name", lambda c: c.explain(None), TypeError, "name: None: str"),  # type: ignore[arg-type]
    ("no duration at all", lambda c: c.advance(None), TypeError, "duration: None"),  # type: ignore[arg-type]
    ("no cluster", lambda c: c.compare(5), TypeError, "other: 5"),  # type: ignore[call-overload]
    ("no change", lambda c: c.plan(5), TypeError, "change: 5: Sequence"),  # type: ignore[arg-type]
    ("no state", lambda c: c.restore(5), TypeError, "state: 5: ClusterState"),  # type: ignore[arg-type]
    ("no specification", lambda c: simulate(5), TypeError, "spec: 5"),  # type: ignore[arg-type]
    (
        "a misspelled field",
        lambda c: c.apply(deployment("a", cpus="1")),  # type: ignore[call-arg]
        TypeError,
        r"deployment\(\) got an unexpected argument 'cpus' \(allowed: cpu, memory,",
    ),
    ("nothing to count", lambda c: c.capacity(), KscheddError, "manifests"),
]


@pytest.mark.parametrize(
    ("use", "kind", "words"), [each[1:] for each in WRONG], ids=[each[0].replace(" ", "-") for each in WRONG]
)
def test_wrong_use_is_named_and_changes_nothing(use: Use, kind: type[Exception], words: str) -> None:
    cluster = Cluster(nodes=1)
    cluster.apply(pod("a"))
    with pytest.raises(kind, match=words):
        use(cluster)
    assert cluster.placements() == {"a": "node-1"}


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"nodes": -1}, ValueError, "0 or more"),
        ({"time": 1e20}, ValueError, "year 9999"),
        ({"time": "2025"}, TypeError, "time: '2025': int or float is required"),
        ({"seed": None}, TypeError, "seed: None: int is required"),
        ({"version": 1.36}, TypeError, "version: 1.36: str is required"),
        ({"plugins": [5]}, TypeError, "classes or paths"),
        ({"plugins": ["/nonexistent.py"]}, KscheddError, "no such file"),
        ({"plugins": "/nonexistent.py"}, KscheddError, "/nonexistent.py: no such file"),
        ({"config": "config.yaml"}, ValueError, r"pass Path\('config.yaml'\)"),
        ({"plugin_args": {"Foo": {}}}, ValueError, "plugin_args: no plugin is named 'Foo'"),
        ({"plugin_weights": {"NodeResourceFit": 2}}, ValueError, 'plugin_weights: .*; did you mean "NodeResourcesFit"'),
        ({"plugin_weights": {"NodeResourcesFit": 0}}, ValueError, "plugin_weights.*: 0: 1 or more is required"),
        ({"plugin_weights": {"NodeResourcesFit": "9"}}, TypeError, "plugin_weights.*: '9': int is required"),
        ({"plugin_args": {"NodeResourcesFit": {}}, "config": {}}, ValueError, "state them in `config`"),
        ({"feature_gates": {"Foo": True}}, KscheddError, "no such feature gate"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        Cluster(**options)


def test_a_workload_named_without_its_kind_is_recognized() -> None:
    cluster = Cluster(nodes=1)
    cluster.apply(deployment("web"))
    with pytest.raises(RpcError, match='pods "web" not found; there is a deployment of that name: deployment/web'):
        cluster.explain("web")


def test_a_dump_without_objects_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DumpLoadError, match="No such file"):
        Cluster.from_dump(tmp_path / "none.yaml")
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(DumpLoadError):
        Cluster.from_dump(tmp_path / "empty.yaml")


def test_a_closed_cluster_says_so() -> None:
    cluster = Cluster(nodes=1)
    cluster.close()
    cluster.close()
    assert repr(cluster) == "<Cluster: closed>"
    for use in (lambda: cluster.pods, lambda: cluster.apply(pod("a")), lambda: cluster.fork(), lambda: cluster.time):
        with pytest.raises(ClosedClusterError, match="closed"):
            use()


def test_manifests_of_the_caller_and_of_the_cluster_are_apart() -> None:
    cluster = Cluster(nodes=1)
    given = pod("a")
    cluster.apply(given)
    given["metadata"]["name"] = "changed"
    dict(cluster.get("Pod", "a"))["metadata"]["labels"] = {"x": "y"}
    cluster.list("Pod")[0]["metadata"].clear()
    assert cluster.placements() == {"a": "node-1"}
    assert not cluster.get("Pod", "a")["metadata"].get("labels")


def test_weights_and_arguments_of_plugins_in_the_tree() -> None:
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    cluster = Cluster(
        [node("a"), node("b")],
        plugin_args={"NodeResourcesFit": {"scoringStrategy": strategy}},
        plugin_weights={"NodeResourcesFit": 20},
    )
    cluster.apply([pod(f"p{number}") for number in range(4)])
    assert len(set(cluster.placements().values())) == 1
