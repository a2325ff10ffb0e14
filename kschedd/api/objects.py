"""Objects of any kind as the rest of kschedd passes them around, and the one place that makes them of manifests."""

from kschedd.api.base import Object, OwnerReference, Raw, version_of, with_fields
from kschedd.api.nodes import Node
from kschedd.api.pods import Pod

__all__ = ["Object", "OwnerReference", "Raw", "parse", "version_of", "with_fields"]


def parse(raw: Raw) -> Object:
    """The typed object of a manifest: Pod and Node have classes of their own, every other kind is an Object."""
    kind = raw.get("kind")
    if kind == "Pod":
        return Pod.from_raw(raw)
    if kind == "Node":
        return Node.from_raw(raw)
    return Object.from_raw(raw)
