"""The namespaces that every cluster has."""

from typing import Final

BUILT_IN_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
UNDELETABLE: Final = frozenset(("default", "kube-public", "kube-system"))
