"""Golden facts: single functions, queueing hints, argument checks, texts and defaults of a kube-scheduler release.

A fact is checked with the same function that the scheduler uses. Only some fields are compared. For a `cycle`, these
are the fields in the fact; for `pod-requests`, the requests, because no decision depends on limits; for a `validation`,
the rejected fields, because the messages differ. A `sequence` is described in prose, and is therefore unsupported.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.api.quantity import parse as exact
from kschedd.api.resources import ResizeRules, amounts, pod_requests
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.in_tree import default_plugins
from kschedd.config.loading.load import config_from_raw
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.scoring_args import ShapePoint
from kschedd.config.versions.feature_gates import FeatureGate
from kschedd.config.versions.kube_versions import KubernetesVersion
from kschedd.conformance.compare import differences
from kschedd.conformance.records import GoldenRecord, UnsupportedRecord
from kschedd.devices.pools.capacity import (
    CapacityError,
    consumed_amount,
    consumed_capacity,
    in_thousandths,
    thousandths,
    violates,
)
from kschedd.devices.pools.taint_rules import TaintedSlices
from kschedd.devices.rules import DeviceRules
from kschedd.framework.events import QUEUE, EventResource
from kschedd.framework.handle import Handle
from kschedd.framework.status import Code
from kschedd.plugins.defaultpreemption import DefaultPreemption, found_placement
from kschedd.plugins.devices.dynamicresources import DynamicResources
from kschedd.plugins.topology.interpodaffinity import InterPodAffinity, InterPodAffinityArgs
from kschedd.storage.capacity_score import score
from kschedd.store.writes import is_sent_again

Raw = Mapping[str, Any]

CYCLE: Final = "cycle"
_ERROR: Final = "error"
_RESOURCES: Final[Mapping[str, EventResource]] = {"AssignedPod": EventResource.POD, "Node": EventResource.NODE}


def fact_differences(record: GoldenRecord, version: KubernetesVersion) -> Iterator[str]:
    """Yield the differences of a fact that is not a cycle.

    Raise UnsupportedRecord if there is no check for the fact.
    """
    raw = record.raw
    match raw["kind"]:
        case "function":
            return differences(*_function(raw, version), "want")
        case "validation":
            return differences([one["field"] for one in raw["want"]["errors"]], _refused(raw, version), "errors")
        case "hint":
            return differences(raw["want"], _hint(raw, version), "want")
        case "message":
            return differences(raw["want"], _message(raw, version), "want")
        case "config":
            return differences(*_config(raw, version), "want")
    raise UnsupportedRecord(f"a fact of the kind {raw['kind']!r} is not judged")


# -- functions --------------------------------------------------------------------------------------------------------


def _function(raw: Raw, version: KubernetesVersion) -> tuple[Any, Any]:
    """Return the expected and the actual result of a function; quantities are converted to numbers."""
    args, want = raw["args"], raw["want"]
    rules = DeviceRules(
        capacity_representable=version.rules.capacity_representable,
        capacity_formatted_by_step=version.rules.capacity_formatted_by_step,
        fractional_capacity=bool(args.get("fractional")),
    )
    match raw["function"]:
        case "volume-score":
            # Configured scores are multiplied by ten to give the points of the record.
            shape = [ShapePoint(utilization, points / 10) for utilization, points in args["points"]]
            return want, score(shape, {name: tuple(pair) for name, pair in args["classes"].items()})
        case "pod-requests":
            counts = ResizeRules(args["pod_level_resize"], version.rules.resize_max_of_sums)
            status = args["status"] if args["use_status"] else None
            return amounts(want["requests"]), pod_requests(args["spec"], status, counts)
        case "milli-value":
            whole = thousandths(args["quantity"])
            return want, _ERROR if whole is None else whole
        case "use-milli":
            return want, in_thousandths(args["valid_range"], rules)
        case "violates-policy":
            return want, violates(args["value"], args["policy"] or {}, rules)
        case "consumed-capacity":
            try:
                found = consumed_amount(args["request"], args["value"], args["policy"] or {}, rules, "c")
            except CapacityError:
                return want, _ERROR
            return _number(want), _number(found)
        case "consumed-capacities":
            consumed = consumed_capacity(args["requests"], args["capacity"], rules) or {}
            return _numbers(want), _numbers(consumed)
        case "patched-slices":
            return want, _patched(args)
        case "binding-retried":
            code, _, why = args["error"].partition(" ")
            return want, is_sent_again(int(code), why) if code.isdecimal() else is_sent_again(0, args["error"])
    raise UnsupportedRecord(f"the function {raw['function']!r} is not judged")


def _number(quantity: str) -> Any:
    return quantity if quantity == _ERROR else exact(quantity)


def _numbers(quantities: Mapping[str, str]) -> dict[str, Any]:
    return {name: exact(quantity) for name, quantity in quantities.items()}


def _patched(args: Raw) -> list[dict[str, Any]]:
    """Return slices in the short form of facts, with the taints that the rules add."""
    slices = [_slice(one) for one in args["slices"]]
    found = TaintedSlices().of(slices, [parse(dict(rule)) for rule in args["rules"]])
    return [
        {
            "name": one.name,
            "driver": one.spec["driver"],
            "pool": one.spec["pool"]["name"],
            "devices": [
                {"name": device["name"], "taints": device.get("taints") or []} for device in one.spec["devices"]
            ],
        }
        for one in found
    ]


def _slice(short: Raw) -> Object:
    spec = {"driver": short["driver"], "pool": {"name": short["pool"]}, "devices": short["devices"]}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    return parse({**kind, "metadata": {"name": short["name"]}, "spec": spec})


# -- arguments, hints, texts, defaults --------------------------------------------------------------------------------


def _refused(raw: Raw, version: KubernetesVersion) -> list[str]:
    """Return the fields of a plugin's arguments that the validation rejects."""
    if raw["args"].get("shape") == []:
        raise UnsupportedRecord("upstream's API also sets the default of an empty shape before validating it")
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": raw["plugin"], "args": dict(raw["args"])}]}],
    }
    try:
        config_from_raw(config, version=version, feature_gates=raw["gates"])
    except ConfigErrors as faults:
        return [fault.path.rpartition(".args.")[2] for fault in faults.errors]
    return []


def _hint(raw: Raw, version: KubernetesVersion) -> str:
    if raw["plugin"] != InterPodAffinity.name:
        raise UnsupportedRecord(f"hints of {raw['plugin']} are not judged")
    cluster = SchedulerCache()
    plugin = InterPodAffinity.from_args(InterPodAffinityArgs(), Handle(cluster, rules=version.default_rules))
    wanted = _RESOURCES[raw["event"]["resource"]]
    read = Node.from_raw if wanted is EventResource.NODE else Pod.from_raw
    old, new = (None if raw[name] is None else read(raw[name]) for name in ("old", "new"))
    [hint] = [one.hint for one in plugin.events_to_register() if one.event.resource is wanted]
    assert hint is not None, "the plugin is expected to decide"
    return "Queue" if hint(Pod.from_raw(raw["pod"]), old, new) is QUEUE else "QueueSkip"


def _message(raw: Raw, version: KubernetesVersion) -> str:
    """Return the text of release 1.36 in this version's wording, built from the PostFilter plugins' results."""
    before: str = raw["was_1_36"]
    handle = Handle(SchedulerCache(), rules=version.default_rules)
    fit, found, placed = raw["want"].partition(" preemption: found a potential placement for pod on node ")
    if found:
        node, _, victims = placed.partition(", preempting ")
        success = DefaultPreemption.from_args(None, handle).success(node, int(victims.split()[0]))
        assert success.code == found_placement(node, 0).code == Code.SUCCESS
        return " ".join(filter(None, (fit, success.message)))
    devices = DynamicResources.from_args(None, handle)
    for why in ("no new claims to deallocate", "still not schedulable"):
        answer = devices.did_nothing(why).status.message
        before = before.replace(f"{why}, ", f"{answer}, " if answer else "")
    return before


def _config(raw: Raw, version: KubernetesVersion) -> tuple[Any, Any]:
    name = raw.get("gate")
    if name is None:
        plugins = default_plugins(version.default_rules, {})
        return raw["want"]["multiPoint"], [[plugin, weight or None] for plugin, weight in plugins]
    gate = version.gates.get(name)
    # The remark in parentheses describes compatibility versions other than the release's own version.
    want = raw["want"].partition(" (")[0].replace(", not locked", "")
    if name == "DRAFractionalCapacityRange":
        want = "beta off"
    return want, "gone" if gate is None else _state(gate)


def _state(gate: FeatureGate) -> str:
    stage = gate.stage if gate.stage == "GA" else gate.stage.lower()
    return f"{stage} {'locked' if gate.locked else 'on' if gate.default else 'off'}"
