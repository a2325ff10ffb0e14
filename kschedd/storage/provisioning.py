"""Provisioning of a volume for a claim on a node: StorageClass, allowed topologies, storage capacity.

Source: Kubernetes v1.34, volumebinding/binder.go (checkVolumeProvisions, hasEnoughCapacity), apis/core/v1/helper
(MatchTopologySelectorTerms).
Units: bytes. Errors: `provisioning` raises no exception; it stores a message in `Provisioning.fault`, which
`Provisioning.on` raises when a node is evaluated, as upstream does.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.quantity import value
from kschedd.api.selecting.requirements import requirement_problems
from kschedd.api.selecting.selectors import (
    IN,
    LabelSelector,
    Requirement,
    SelectorError,
    interned,
    parse_label_selector,
)
from kschedd.storage.claims import WAIT_FOR_FIRST_CONSUMER, class_of, requested_bytes
from kschedd.storage.label_index import LabelIndex, required_label
from kschedd.storage.volumes import StorageError

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"

Kinds = Mapping[str, Object]


class CapacityOutcome(Enum):
    """The possible outcomes for a volume to be provisioned on a node."""

    POSSIBLE = "possible"
    NOT_HERE = "not here"  # no provisioner, or the topology is not allowed
    NO_SPACE = "no space"


@attrs.frozen(eq=False)
class Capacity:
    """A CSIStorageCapacity that is large enough for the claim."""

    obj: Object
    selector: LabelSelector


@attrs.frozen(eq=False)
class Provisioning:
    claim: Object
    fault: str = ""
    possible: bool = True
    topologies: tuple[LabelSelector, ...] | None = None  # None: every node is allowed
    # None: the driver publishes no capacities, so capacity is not checked
    capacities: LabelIndex[Capacity] | None = None

    def on(self, labels: Mapping[str, str]) -> tuple[CapacityOutcome, Capacity | None]:
        """Return whether a node with these labels can get the volume, and the capacity that the volume would use.

        Raises StorageError.
        """
        if self.fault:
            raise StorageError(self.fault)
        if not self.possible:
            return CapacityOutcome.NOT_HERE, None
        if self.topologies is not None and not any(term.matches(labels) for term in self.topologies):
            return CapacityOutcome.NOT_HERE, None
        if self.capacities is None:
            return CapacityOutcome.POSSIBLE, None
        for capacity in self.capacities.candidates(labels):
            if capacity.selector.matches(labels):
                return CapacityOutcome.POSSIBLE, capacity
        return CapacityOutcome.NO_SPACE, None


def provisioning(claim: Object, classes: Kinds, drivers: Kinds, capacities: Kinds) -> Provisioning:
    """Return the provisioning requirements of a claim; the mappings are by name (capacities by namespace/name)."""
    name = class_of(claim)
    if not name:
        return Provisioning(claim, f'no class for claim "{claim.key}"')
    storage_class = classes.get(name)
    if storage_class is None:
        return Provisioning(claim, f'failed to find storage class "{name}"')
    provisioner = storage_class.raw.get("provisioner") or ""
    if provisioner in ("", NO_PROVISIONER):
        return Provisioning(claim, possible=False)
    topologies = allowed_topologies(storage_class.raw.get("allowedTopologies"))
    size = requested_bytes(claim)
    driver = drivers.get(provisioner)
    if size is None or driver is None or not driver.spec.get("storageCapacity"):
        return Provisioning(claim, topologies=topologies)
    enough = (_capacity(obj, name, size) for obj in capacities.values())
    filed = LabelIndex.of((found, required_label(found.selector)) for found in enough if found is not None)
    return Provisioning(claim, topologies=topologies, capacities=filed)


def allowed_topologies(raw: Iterable[Mapping[str, Any]] | None) -> tuple[LabelSelector, ...] | None:
    """Return the allowedTopologies of a StorageClass, one selector per term; None if it has none.

    Invalid terms match no node.
    """
    terms = list(raw or ())
    if not terms:
        return None
    selectors = []
    for term in terms:
        demands = [
            Requirement(e.get("key") or "", IN, tuple(e.get("values") or ()))
            for e in term.get("matchLabelExpressions") or ()
        ]
        if demands and not any(requirement_problems(d.key, IN, d.values, "") for d in demands):
            selectors.append(interned(demands))
    return tuple(selectors)


def limit(capacity: Object) -> int | None:
    """Return the size in bytes of the largest volume that this CSIStorageCapacity allows; None if it sets no limit."""
    text = capacity.raw.get("maximumVolumeSize")
    if text is None:
        text = capacity.raw.get("capacity")
    return None if text is None else value(text)


def _capacity(obj: Object, storage_class: str, size: int) -> Capacity | None:
    if obj.raw.get("storageClassName") != storage_class:
        return None
    largest = limit(obj)
    topology = obj.raw.get("nodeTopology")
    if largest is None or largest < size or topology is None:
        return None
    try:
        return Capacity(obj, parse_label_selector(topology))
    except SelectorError:
        return None


def waits_for_consumer(claim: Object, classes: Kinds) -> bool:
    """Return whether the claim's class has volumeBindingMode WaitForFirstConsumer. Raises StorageError."""
    name = class_of(claim)
    storage_class = classes.get(name) if name else None
    if storage_class is None:
        return False
    mode = storage_class.raw.get("volumeBindingMode")
    if not mode:
        raise StorageError(f'VolumeBindingMode not set for StorageClass "{name}"')
    return bool(mode == WAIT_FOR_FIRST_CONSUMER)
