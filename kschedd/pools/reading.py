"""Reader of node pools: files of Karpenter, files of Cluster Autoscaler, and a plain form.

    NodePool, NodeOverlay       Karpenter: pools, and changes of prices
    a list of instance types    `instance_types.json` of Karpenter's kwok provider
    Node, List, ConfigMap       Cluster Autoscaler: template nodes, as its kwok provider reads them
    nodeGroups:                 Cluster Autoscaler: [{name, min, max, price, template}]
    pools:                      the plain form: [{name, shape, price, limit}], for either autoscaler
    autoscaler:                 settings of the autoscaler (`kschedd.pools.settings`)

The plain form is used by both autoscalers: for Karpenter, each pool has one instance type; for Cluster Autoscaler, each
pool is a group. Objects whose kind ends in `NodeClass` are ignored. Faults name the file, the line, the field and the
allowed values. Prices are per hour, in any currency.

Source: kubernetes/autoscaler, cluster-autoscaler/cloudprovider/kwok/kwok_constants.go and kwok_config.go.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import attrs

from kschedd.api.nodes import Node
from kschedd.api.quantity import QuantityError
from kschedd.api.resources import Resources, amounts
from kschedd.api.text.documents import Document, read_documents
from kschedd.config.parsing.faults import ConfigError, ConfigErrors
from kschedd.config.parsing.reading import INT32, ConfigFields, ConfigReader, ConfigValue
from kschedd.config.parsing.source import path_of
from kschedd.pools.autoscaler.groups import AutoscaledGroup
from kschedd.pools.karpenter.instance_types import InstanceType, Offering, instance_types_of
from kschedd.pools.karpenter.node_pools import NodePool, node_pool_of
from kschedd.pools.karpenter.overlays import NodeOverlay, apply_overlays, overlay_of
from kschedd.pools.karpenter.requirements import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ZONE, of_labels
from kschedd.pools.settings import AUTOSCALERS, AutoscalerSettings, settings_of

#: labels and annotations of nodes that name their pool, the most specific first
POOL_KEYS: Final = (
    *("kschedd.io/pool", NODE_POOL, "cluster-autoscaler.kwok.nodegroup/name", "kwok-nodegroup"),
    *("eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "cloud.google.com/gke-nodepool"),
    *("kubernetes.azure.com/agentpool", "agentpool", "node.kubernetes.io/nodegroup"),
)
#: label of nodes that are launched for a group of Cluster Autoscaler
POOL_LABEL: Final = POOL_KEYS[0]
_PRICE: Final = "kschedd.io/price"
_KWOK: Final = "cluster-autoscaler.kwok.nodegroup/"
_MOST: Final = 5000  # largest number of nodes of a pool without a limit
_KINDS: Final = "NodePool, NodeOverlay, Node, List, ConfigMap"
_KEYS: Final = ("pools", "nodeGroups", "autoscaler")
_UNNAMED: Final = "metadata.name is required"

Raw = Mapping[str, Any]


def pool_name(node: Node) -> str:
    """Return the name of the node's pool, from its labels and annotations, or ""."""
    named = (node.labels.get(key) or node.annotations.get(key) for key in POOL_KEYS)
    return next((str(name) for name in named if name), "")


@attrs.frozen(eq=False)
class Pools:
    """The pools of a cluster.

    `node_pools` are those of Karpenter, with `types` and `overlays`. `groups` are those of Cluster Autoscaler and of
    the plain form; `plain` is true if all groups have the plain form. `priorities` are the patterns of names of groups
    by priority, for the expander `priority`.
    """

    node_pools: Sequence[NodePool] = ()
    types: Sequence[InstanceType] = ()
    overlays: Sequence[NodeOverlay] = ()
    groups: Sequence[AutoscaledGroup] = ()
    plain: bool = False
    settings: AutoscalerSettings = attrs.field(factory=AutoscalerSettings)
    priorities: Mapping[int, Sequence[str]] = attrs.field(factory=dict)

    @property
    def autoscaler(self) -> str:
        """The autoscaler: the one in the settings, else the one whose pools these are."""
        return self.settings.name or AUTOSCALERS[0 if self.node_pools or self.plain else 1]

    @property
    def names(self) -> list[str]:
        return [*(pool.name for pool in self.node_pools), *(group.name for group in self.groups)]

    def karpenter_pools(self) -> list[NodePool]:
        """Return the pools as Karpenter has them; each group is a pool with one type."""
        return [*self.node_pools, *map(_pool_of_group, self.groups)]

    def price_of(self, node: Node) -> float | None:
        """Return the price of a node per hour; None if its pool does not offer its instance type."""
        own = self._types_by_name.get(pool_name(node))
        if not own:
            return None
        labels = node.labels
        one = own.get(labels.get(INSTANCE_TYPE, "")) or (next(iter(own.values())) if len(own) == 1 else None)
        return None if one is None else one.price_in(labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, ""))

    @cached_property
    def _types_by_name(self) -> dict[str, dict[str, InstanceType]]:
        return {pool: {each.name: each for each in own} for pool, own in self.types_by_pool.items()}

    @cached_property
    def types_by_pool(self) -> dict[str, Sequence[InstanceType]]:
        """The instance types of each pool, after its overlays."""
        found: dict[str, Sequence[InstanceType]] = {}
        for pool in self.node_pools:
            overlaid = apply_overlays(self.types, self.overlays, pool.name, pool.labels)
            found[pool.name] = [_with_capacity(each, overlaid.capacity.get(each.name)) for each in overlaid.types]
        return found | {group.name: [type_of_group(group)] for group in self.groups}


def _with_capacity(each: InstanceType, added: Mapping[str, str] | None) -> InstanceType:
    return each if not added else attrs.evolve(each, capacity={**each.capacity, **amounts(added)})


def _pool_of_group(group: AutoscaledGroup) -> NodePool:
    labels = {key: text for key, text in group.template.labels.items() if key != "kubernetes.io/hostname"}
    return NodePool(
        name=group.name,
        labels=labels,
        taints=group.template.taints,
        expire_after_s=None,
        limits={"nodes": group.maximum} if group.maximum < _MOST else {},
    )


def type_of_group(group: AutoscaledGroup) -> InstanceType:
    """Return the instance type of a group: the allocatable resources and labels of its template."""
    labels = {INSTANCE_TYPE: group.name, **group.template.labels}
    own = {key: each for key, each in of_labels(labels).items() if key != "kubernetes.io/hostname"}
    return InstanceType(
        labels[INSTANCE_TYPE], own, group.template.allocatable, [Offering({}, group.price or 0.0)], overhead={}
    )


# -- files ----------------------------------------------------------------------------------------------------------


@attrs.frozen
class PoolFile:
    name: str
    text: str


def read_pools(files: Iterable[PoolFile]) -> Pools:
    """Return the pools in all files together. Raises ConfigErrors with all faults."""
    reading = _Reading()
    for file in files:
        reading.read(file.name, file.text)
    return reading.result()


@attrs.define(eq=False)
class _Reading:
    faults: list[ConfigError] = attrs.field(factory=list)
    pools: list[NodePool] = attrs.field(factory=list)
    types: list[InstanceType] = attrs.field(factory=list)
    overlays: list[NodeOverlay] = attrs.field(factory=list)
    groups: list[AutoscaledGroup] = attrs.field(factory=list)
    plain: bool = True
    settings: AutoscalerSettings | None = None
    priorities: dict[int, list[str]] = attrs.field(factory=dict)
    places: dict[str, ConfigValue] = attrs.field(factory=dict)  # by the name of the pool

    def read(self, source: str, text: str) -> None:
        found = False
        for document in read_documents(text.removeprefix("\ufeff")):
            found = True
            self.faults += [
                ConfigError(source, fault.line, path_of(fault.path), fault.value, fault.why)
                for fault in document.faults
            ]
            if not document.faults:
                self._document(source, document)
        if not found:
            self.faults.append(ConfigError(source, 0, "$", None, "the file is empty: node pools are required"))

    def result(self) -> Pools:
        if self.pools and not self.types and not self.faults:
            first = self.places[self.pools[0].name]
            first.wrong("NodePools need instance types: add --pools instance_types.json")
            self.faults += first.reading.faults
        if not self.pools and not self.groups and not self.faults:
            self.faults.append(ConfigError("--pools", 0, "$", None, "the files contain no node pool"))
        if self.faults:
            raise ConfigErrors(tuple(self.faults))
        plain = self.plain and bool(self.groups)
        settings = self.settings or AutoscalerSettings()
        return Pools(self.pools, self.types, self.overlays, self.groups, plain, settings, self.priorities)

    def _document(self, source: str, document: Document) -> None:
        reader = ConfigReader(source, document)
        try:
            self._value(ConfigValue(document.value, "$", reader))
        except ConfigErrors as wrong:
            self.faults += [each for each in wrong.errors if each not in reader.faults]
        self.faults += sorted(reader.faults, key=lambda fault: fault.line)

    def _value(self, value: ConfigValue) -> None:
        if isinstance(value.value, list):
            self.types += instance_types_of(value.value, value.reading, available=True)
        elif not isinstance(value.value, Mapping):
            value.wrong("must be a mapping or a list of instance types")
        elif "kind" in value.value:
            self._object(value)
        else:
            self._plain(value)

    def _object(self, value: ConfigValue) -> None:
        kind = str(value.value["kind"])
        if kind == "NodePool":
            pool = node_pool_of(value.value, value.reading, value.path)
            if self._is_new(pool.name, value):
                self.pools.append(pool)
        elif kind == "NodeOverlay":
            self.overlays.append(overlay_of(value.value, value.reading, value.path))
        elif kind == "Node":
            self._template(value)
        elif kind == "ConfigMap":
            self._config_map(value)
        elif kind == "List" or "items" in value.value:
            for each in value.at("items", value.value.get("items") or []).items():
                self._value(each)
        elif not kind.endswith("NodeClass"):
            value.at("kind", kind).wrong("not a kind of node pools", _KINDS)

    def _config_map(self, value: ConfigValue) -> None:
        """Read the templates of Cluster Autoscaler's kwok provider, or the priorities of its expander."""
        stated = value.at("data", value.value.get("data") or {})
        if stated.fields(any_other=True) is None:
            return
        data = stated.value
        if isinstance(data.get("templates"), str):
            self.read(f"{value.reading.source} (data.templates)", data["templates"])
        if isinstance(data.get("priorities"), str):
            self._priorities(value.at("data", None).at("priorities", data["priorities"]))

    def _priorities(self, value: ConfigValue) -> None:
        read = next(iter(read_documents(value.value)), None)
        stated = None if read is None else read.value
        for priority, patterns in stated.items() if isinstance(stated, Mapping) else ():
            try:
                self.priorities[int(priority)] = [re.compile(pattern).pattern for pattern in patterns]
            except (ValueError, TypeError, re.error) as fault:
                value.at(str(priority), patterns).wrong(f"must be a list of regular expressions: {fault}")

    def _is_new(self, name: str, value: ConfigValue) -> bool:
        if name in self.places:
            value.wrong(f'there are two pools with the name "{name}"')
            return False
        self.places[name] = value
        return True

    def _template(self, value: ConfigValue) -> None:
        node = _node(value)
        if node is None:
            return
        name = pool_name(node) or node.name
        if not name:
            value.wrong(_UNNAMED)
        least = _whole(value, node, f"{_KWOK}min-count", 0)
        most = _whole(value, node, f"{_KWOK}max-count", _MOST)
        price = _price(value, node)
        if name and self._is_new(name, value):
            self._add(AutoscaledGroup(name, least, most, least, _template_of(node, name), price=price), value)
        self.plain = False

    def _add(self, group: AutoscaledGroup, value: ConfigValue) -> None:
        if group.minimum > group.maximum:
            value.wrong(f"the minimum {group.minimum} is above the maximum {group.maximum}")
        self.groups.append(group)

    def _plain(self, value: ConfigValue) -> None:
        fields = value.fields(*_KEYS)
        if fields is None:
            return
        for each in fields.items("pools"):
            self._plain_pool(each)
        for each in fields.items("nodeGroups"):
            self._node_group(each)
        stated = fields.get("autoscaler")
        if stated is not None:
            if self.settings is not None:
                stated.wrong("there are two sections with the settings of the autoscaler")
            self.settings = settings_of(stated)

    def _plain_pool(self, value: ConfigValue) -> None:
        fields = value.fields("name", "shape", "price", "limit", "labels")
        name = None if fields is None else fields.needed_text("name")
        shape = None if fields is None else fields.get("shape")
        if fields is None or name is None:
            return
        if shape is None:
            fields.missing("shape", 'required, such as "cpu=4,memory=16Gi"')
            return
        resources, price = _shape(shape), _number(fields, "price")
        most = fields.integer("limit", _MOST, (0, INT32[1]))
        if resources is not None and self._is_new(name, value):
            node = _bare_template(name, resources, _labels(fields))
            self._add(AutoscaledGroup(name, 0, most, 0, node, price=price), value)

    def _node_group(self, value: ConfigValue) -> None:
        fields = value.fields("name", "min", "max", "target", "price", "template")
        name = None if fields is None else fields.needed_text("name")
        template = None if fields is None else fields.get("template")
        self.plain = False
        if fields is None or name is None:
            return
        if template is None:
            fields.missing("template", "required: a Node")
            return
        node = _node(template)
        least, most = fields.integer("min", 0, (0, INT32[1])), fields.integer("max", _MOST, (0, INT32[1]))
        target = fields.integer("target", least, (0, INT32[1]))
        price = _number(fields, "price")
        if node is not None and self._is_new(name, value):
            self._add(AutoscaledGroup(name, least, most, target, _template_of(node, name), price=price), value)


def _node(value: ConfigValue) -> Node | None:
    if not isinstance(value.value, Mapping):
        value.wrong("must be a Node")
        return None
    raw = dict(value.value)
    meta = value.at("metadata", raw.get("metadata") or {})
    if meta.fields(any_other=True) is None:
        return None
    for name in ("labels", "annotations"):
        if meta.at(name, meta.value.get(name) or {}).fields(any_other=True) is None:
            return None
    status = raw.get("status") if isinstance(raw.get("status"), Mapping) else {}
    try:
        node = Node.from_raw({**raw, "status": {**_with_both(status), "conditions": _READY}})
    except (QuantityError, AttributeError, TypeError) as fault:
        value.wrong(f"not a Node: {fault}")
        return None
    if not node.allocatable:
        value.wrong("status.allocatable is required")
        return None
    return node


_READY: Final = [{"type": "Ready", "status": "True"}]


def _with_both(status: Any) -> dict[str, Any]:
    """Return the status with capacity and allocatable, each as the other states it."""
    there = {"pods": "110", **(status.get("allocatable") or status.get("capacity") or {})}
    if there.keys() == {"pods"}:
        return {}
    return {**status, "allocatable": there, "capacity": {**there, **(status.get("capacity") or {})}}


def _template_of(node: Node, name: str) -> Node:
    raw, meta = node.raw, node.metadata
    kept = {key: text for key, text in node.annotations.items() if not key.startswith((_KWOK, _PRICE))}
    labels = {**node.labels, POOL_LABEL: name}
    return Node.from_raw({**raw, "metadata": {**meta, "name": name, "labels": labels, "annotations": kept}})


def _bare_template(name: str, resources: Mapping[str, str], labels: Mapping[str, str]) -> Node:
    has = {"pods": "110", **resources}
    named = {INSTANCE_TYPE: name, "kubernetes.io/os": "linux", **labels, POOL_LABEL: name}
    status = {"capacity": has, "allocatable": has, "conditions": _READY}
    return Node.from_raw(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": named}, "status": status}
    )


def _labels(fields: ConfigFields) -> dict[str, str]:
    value = fields.mapping("labels")
    if value is None or value.fields(any_other=True) is None:
        return {}
    return {str(key): text for key, each in value.value.items() if (text := value.at(key, each).text()) is not None}


def _shape(value: ConfigValue) -> dict[str, str] | None:
    """Return the resources in `cpu=4,memory=16Gi`."""
    text = value.text()
    if text is None:
        return None
    parts = [part.partition("=") for part in text.split(",")]
    resources = {name.strip(): amount.strip() for name, _, amount in parts}
    try:
        read: Resources = amounts(resources)
    except QuantityError as fault:
        value.wrong(f"{fault}: a shape is a list of RESOURCE=AMOUNT, such as cpu=4,memory=16Gi")
        return None
    if missing := [name for name in ("cpu", "memory") if not read.get(name)]:
        value.wrong(f"{' and '.join(missing)} must be above 0 in a shape such as cpu=4,memory=16Gi")
        return None
    return resources


def _number(fields: ConfigFields, name: str) -> float | None:
    value = fields.get(name)
    number = None if value is None else value.number()
    if value is not None and number is not None and not 0 <= number < float("inf"):
        value.wrong("out of range", "0 or more")
    return number


def _whole(value: ConfigValue, node: Node, annotation: str, default: int) -> int:
    text = str(node.annotations.get(annotation, default))
    if not (text.isascii() and text.isdigit()):
        value.at("metadata", None).at("annotations", None).at(annotation, text).wrong("must be a whole number")
        return default
    return int(text)


def _price(value: ConfigValue, node: Node) -> float | None:
    text = node.annotations.get(_PRICE)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        value.at("metadata", None).at("annotations", None).at(_PRICE, text).wrong("must be a number, 0 or more")
    return number
