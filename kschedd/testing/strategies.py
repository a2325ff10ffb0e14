"""Hypothesis strategies for manifests of nodes and pods; they require the library `hypothesis`.

    @given(strategies.node_lists(), strategies.pod_lists())
    def test_no_node_is_overcommitted(nodes, pods):
        cluster = Cluster(nodes)
        ...

Amounts and labels are drawn from few values, so that conflicts are common.
"""

from typing import Any

from hypothesis import strategies as st

from kschedd.sdk.objects import node, pod

Raw = dict[str, Any]

_ZONES, _DISKS, _APPS, _KEYS = ("a", "b", "c"), ("ssd", "hdd"), ("web", "db", "batch"), ("team", "gpu")
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def names(prefix: str) -> st.SearchStrategy[str]:
    """Return a strategy of object names that begin with this prefix."""
    return st.integers(0, 99).map(lambda number: f"{prefix}-{number}")


def taints() -> st.SearchStrategy[Raw]:
    """Return a strategy of taints."""
    return st.fixed_dictionaries(
        {"key": st.sampled_from(_KEYS), "value": st.sampled_from(("x", "y")), "effect": st.sampled_from(_EFFECTS)}
    )


@st.composite
def nodes(draw: st.DrawFn, name: str | None = None) -> Raw:
    """Return a strategy of nodes with zones, labels, taints, and 1 to 8 CPUs. `name`: None draws one."""
    labels = {_ZONE: draw(st.sampled_from(_ZONES)), "disk": draw(st.sampled_from(_DISKS))}
    return node(
        draw(names("node")) if name is None else name,
        cpu=draw(st.sampled_from(("1", "2", "4", "8"))),
        memory=draw(st.sampled_from(("2Gi", "8Gi", "32Gi"))),
        pods=draw(st.sampled_from((2, 10, 110))),
        labels=labels,
        taints=draw(st.lists(taints(), max_size=1)),
    )


@st.composite
def pods(draw: st.DrawFn, name: str | None = None) -> Raw:
    """Return a strategy of pods with requests, selectors, tolerations, affinity and spread constraints."""
    app = draw(st.sampled_from(_APPS))
    spec: Raw = {}
    for field in draw(st.sets(st.sampled_from(sorted(_FIELDS)), max_size=2)):
        spec |= draw(_FIELDS[field](app))
    return pod(
        draw(names("pod")) if name is None else name,
        cpu=draw(st.sampled_from(("100m", "500m", "1", "3"))),
        memory=draw(st.sampled_from(("64Mi", "1Gi", "4Gi"))),
        labels={"app": app},
        spec=spec,
    )


def node_lists(most: int = 6) -> st.SearchStrategy[list[Raw]]:
    """Return a strategy of lists of 1 to `most` nodes with different names."""
    return st.lists(nodes(), min_size=1, max_size=most, unique_by=_name)


def pod_lists(most: int = 12) -> st.SearchStrategy[list[Raw]]:
    """Return a strategy of lists of 1 to `most` pods with different names."""
    return st.lists(pods(), min_size=1, max_size=most, unique_by=_name)


def _name(raw: Raw) -> str:
    found: str = raw["metadata"]["name"]
    return found


def _selecting(app: str) -> st.SearchStrategy[Raw]:
    return st.sampled_from(_DISKS).map(lambda disk: {"nodeSelector": {"disk": disk}})


def _tolerating(app: str) -> st.SearchStrategy[Raw]:
    return st.sampled_from(_KEYS).map(lambda key: {"tolerations": [{"key": key, "operator": "Exists"}]})


def _spreading(app: str) -> st.SearchStrategy[Raw]:
    def constraint(key: str, otherwise: str) -> Raw:
        selector = {"matchLabels": {"app": app}}
        one = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": otherwise, "labelSelector": selector}
        return {"topologySpreadConstraints": [one]}

    return st.builds(constraint, st.sampled_from((_ZONE, _HOST)), st.sampled_from(("DoNotSchedule", "ScheduleAnyway")))


def _avoiding(app: str) -> st.SearchStrategy[Raw]:
    def affinity(which: str, key: str) -> Raw:
        term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
        return {"affinity": {which: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    return st.builds(affinity, st.sampled_from(("podAffinity", "podAntiAffinity")), st.sampled_from((_ZONE, _HOST)))


_FIELDS = {"affinity": _avoiding, "nodeSelector": _selecting, "spread": _spreading, "tolerations": _tolerating}
