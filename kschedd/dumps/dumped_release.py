"""The release of a dumped or mirrored cluster, and the supported release that matches its scheduler best.

The newest kubelet determines the release: kube-scheduler is at most one release older than the API server, and no
kubelet is newer than its API server. Suffixes that providers append to the version are ignored.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from kschedd.config.versions.kube_versions import (
    DEFAULT,
    KubernetesVersion,
    difference_from,
    minor_of,
    nearest_version,
)


@attrs.frozen
class DumpedRelease:
    """`minor` of the release 1.`minor` that the nodes report; None if no node reports a version."""

    minor: int | None

    @classmethod
    def of(cls, texts: Iterable[str]) -> "DumpedRelease":
        """Return the newest release among versions such as v1.36.3-gke.100."""
        return cls(max((minor for text in texts if (minor := minor_of(text)) is not None), default=None))

    @property
    def version(self) -> KubernetesVersion:
        """The supported version whose decisions are most similar to those of this release."""
        return DEFAULT if self.minor is None else nearest_version(self.minor)

    @property
    def reason(self) -> str:
        """The reason for the choice of the version, as a sentence; "" if it is the default version."""
        differs = "" if self.minor is None else difference_from(self.minor)
        if differs:
            return (
                f"the nodes are of Kubernetes 1.{self.minor}, which is not supported; {differs} "
                "(--kube-version overrides)"
            )
        if self.version is DEFAULT:
            return ""
        return f"the rules of Kubernetes {self.version.name} apply, the version of the nodes (--kube-version overrides)"


def kubelet_version(node: Mapping[str, Any]) -> str:
    """Return the kubelet version in a node's status; "" without one."""
    status = node.get("status")
    info = status.get("nodeInfo") if isinstance(status, Mapping) else None
    return str(info.get("kubeletVersion") or "") if isinstance(info, Mapping) else ""
