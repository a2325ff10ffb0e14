"""Objects of any kind, and the function that creates objects from manifests."""

import attrs

from kschedd.api.base import Object, OwnerReference, Raw, version_of, with_fields
from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.schemas.kinds import kind_of

__all__ = ["Object", "OwnerReference", "Raw", "parse", "version_of", "with_fields"]


def parse(raw: Raw) -> Object:
    """Return the typed object of a manifest: a Pod, a Node, or for any other kind an Object.

    The object's kind is kschedd's unique name for the kind (`kinds.name_in_group`).
    """
    kind = raw.get("kind")
    if kind == "Pod":
        return Pod.from_raw(raw)
    if kind == "Node":
        return Node.from_raw(raw)
    made = Object.from_raw(raw)
    name = kind_of(raw).name
    return made if name == made.kind else attrs.evolve(made, kind=name)
