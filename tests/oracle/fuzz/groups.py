"""Random traces with PodGroups, created before or after their pods, changed, preempting, and preempted."""

from tests.oracle.fuzz.cluster import Cluster, cluster_of, pod, running
from tests.oracle.fuzz.draws import HOSTNAME, NAMESPACES, PRIORITIES, REGION, ZONE, Draw, Raw
from tests.oracle.fuzz.script import OPERATIONS, Script

_OPERATIONS = (*OPERATIONS, *("group",) * 8, *("member",) * 5, *("smaller", "ungroup", "regroup", "run", "advance"))


def group_trace(seed: int, number: int, minor: int) -> Raw:
    """Return the trace of this seed and number."""
    draw = Draw(f"{seed}/groups/{number}")
    return _trace(draw, f"groups/{seed}-{number}", cluster_of(draw, minor, draw.randint(1, 6), crowded=draw.chance(70)))


def domain_trace(seed: int, number: int, minor: int) -> Raw:
    """Return a trace with groups that have topology constraints (TopologyAwareWorkloadScheduling)."""
    draw = Draw(f"{seed}/domains/{number}")
    cluster = cluster_of(draw, minor, draw.choice((1, 2, 3, 4, 6, 8, 12)), crowded=draw.chance(40))
    return _trace(draw, f"domains/{seed}-{number}", cluster, domains=True)


def _trace(draw: Draw, name: str, cluster: Cluster, *, domains: bool = False) -> Raw:
    """Return a trace on this cluster; with `domains`, most groups have a topology constraint."""
    for one in cluster.nodes:
        one["status"].pop("images", None)  # kube-scheduler recounts images only on nodes that change
    groups = [_group(cluster, f"old-{place}", domains) for place in range(draw.choice((0, 1, 2)))]
    for group in groups:
        for _ in range(draw.randint(1, 3)):
            member = running(cluster, draw.choice(cluster.node_names), large=draw.chance(50))
            cluster.pods.append(_joined(draw, member, group))
    script = GroupScript(cluster, groups, domains)
    objects = cluster.objects
    operations = [script.operation() for _ in range(draw.randint(15, 45))]
    return {
        "id": name,
        "family": "traces",
        "config": cluster.config,
        "feature_gates": {"GenericWorkload": True, **({"TopologyAwareWorkloadScheduling": True} if domains else {})},
        "graceful_deletion": draw.chance(30),
        "autorun": draw.chance(70),
        "objects": objects,
        "ops": [operation for some in operations for operation in some],
    }


def _group(cluster: Cluster, name: str, domains: bool) -> Raw:
    draw = cluster.draw
    policy: Raw = {"gang": {"minCount": draw.randint(1, 4)}} if draw.chance(75) else {"basic": {}}
    spec: Raw = {"schedulingPolicy": policy, "priority": draw.choice((*PRIORITIES, 50, 500))}
    if draw.chance(60):
        spec["disruptionMode"] = {draw.choice(("single", "all", "all")): {}}
    if domains and draw.chance(80):
        key = draw.choice((ZONE, ZONE, ZONE, REGION, HOSTNAME, "example.com/rack"))
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    return cluster.add("PodGroup", "scheduling.k8s.io/v1beta1", name, draw.choice(("default", *NAMESPACES)), spec=spec)


def _joined(draw: Draw, member: Raw, group: Raw) -> Raw:
    """Return the pod as a member of the group."""
    metadata, spec = member["metadata"], member["spec"]
    metadata["namespace"] = group["metadata"]["namespace"]
    spec["schedulingGroup"] = {"podGroupName": group["metadata"]["name"]}
    if not draw.chance(3):
        spec["priority"] = group["spec"]["priority"]
    if not draw.chance(3):
        spec["preemptionPolicy"] = "PreemptLowerPriority"
    return member


class GroupScript(Script):
    """The operations of one trace with PodGroups."""

    operations = _OPERATIONS

    def __init__(self, cluster: Cluster, groups: list[Raw], domains: bool) -> None:
        super().__init__(cluster)
        self._domains = domains
        self._groups = list(groups)
        self._deleted: list[Raw] = []

    def _group(self) -> list[Raw]:
        """Create a group with its pods in random order, sometimes without the group or with too few pods."""
        draw, cluster = self._draw, self._cluster
        group = _group(cluster, f"group-{cluster.number()}", self._domains)
        cluster.others.remove(group)
        needed = group["spec"]["schedulingPolicy"].get("gang", {}).get("minCount", 2)
        created = [self._new_member(group) for _ in range(max(1, needed + draw.choice((-1, 0, 0, 0, 1, 2))))]
        if draw.chance(90):
            self._groups.append(group)
            created.insert(draw.randrange(len(created) + 1), group)
        else:
            self._deleted.append(group)
        return [{"op": "create", "object": one} for one in created]

    def _new_member(self, group: Raw) -> Raw:
        draw = self._draw
        created = pod(self._cluster, large=draw.chance(60))
        self._pods.append(created)
        if draw.chance(5):
            created["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        return _joined(draw, created, group)

    def _run(self) -> list[Raw]:
        """Run the scheduler without operations during a cycle, since kschedd's traces have none within a PodGroup's."""
        return [{name: value for name, value in one.items() if name in ("op", "cycles")} for one in super()._run()]

    def _member(self) -> list[Raw]:
        if not self._groups:
            return self._group()
        return [{"op": "create", "object": self._new_member(self._draw.choice(self._groups))}]

    def _smaller(self) -> list[Raw]:
        if not self._groups:
            return self._advance()
        group = self._draw.choice(self._groups)
        policy = group["spec"]["schedulingPolicy"]
        if "gang" not in policy:
            return self._advance()
        patch = {"spec": {"schedulingPolicy": {"gang": {"minCount": self._draw.randint(1, 4)}}}}
        return [{"op": "patch", **_names(group), "patch": patch}]

    def _ungroup(self) -> list[Raw]:
        if not self._groups:
            return self._advance()
        group = self._groups.pop(self._draw.randrange(len(self._groups)))
        self._deleted.append(group)
        return [{"op": "delete", **_names(group)}]

    def _regroup(self) -> list[Raw]:
        if not self._deleted:
            return self._advance()
        group = self._deleted.pop(self._draw.randrange(len(self._deleted)))
        self._groups.append(group)
        return [{"op": "create", "object": group}]


def _names(group: Raw) -> Raw:
    metadata = group["metadata"]
    return {"kind": "PodGroup", "name": metadata["name"], "namespace": metadata["namespace"]}
