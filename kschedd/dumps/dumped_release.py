"""The release of a dumped or mirrored cluster, and the supported release that decides as its scheduler does.

The newest kubelet shows the release: kube-scheduler is never older than the API server's previous release, and no
kubelet is newer than its API server. Nodes of another cluster provider add to the version what does not matter here.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from kschedd.config.versions.kube_versions import DEFAULT, KUBE_VERSIONS, KubernetesVersion

_MINOR: Final = re.compile(r"v?1\.(\d+)(?:\D|$)")
_OLDER: Final[tuple[tuple[int, str], ...]] = (
    (34, "before 1.34 device claims and pod-level resources do not count by default"),
    (32, "before 1.32 more events wake unschedulable pods"),
)
"""The most visible differences between the oldest supported release and those before the named one."""


@attrs.frozen
class DumpedRelease:
    """`minor` of the release 1.`minor`, as the nodes show it; None if no node states a version."""

    minor: int | None

    @classmethod
    def of(cls, texts: Iterable[str]) -> "DumpedRelease":
        """Return the newest release among versions such as v1.36.3-gke.100."""
        found = [int(match[1]) for match in map(_MINOR.match, texts) if match]
        return cls(max(found, default=None))

    @property
    def version(self) -> KubernetesVersion:
        """The supported version that decides most alike."""
        if self.minor is None:
            return DEFAULT
        return _SUPPORTED.get(self.minor) or _SUPPORTED[min(max(self.minor, _OLDEST), _NEWEST)]

    @property
    def told(self) -> str:
        """The reason for the version, in words; "" where it is the default one anyway."""
        if self.minor is None or (self.minor in _SUPPORTED and self.version is DEFAULT):
            return ""
        if self.minor in _SUPPORTED:
            return f"the cluster is decided as by {self.version.name}, which its nodes are (--kube-version overrides)"
        text = f"the nodes are of Kubernetes 1.{self.minor}, which is not supported; "
        if self.minor > _NEWEST:
            return f"{text}{self.version.name} decides, the newest supported release (--kube-version overrides)"
        differs = "; ".join(what for release, what in _OLDER if self.minor < release)
        return f"{text}{self.version.name} decides most alike (--kube-version overrides). It differs: {differs}"


_SUPPORTED: Final[Mapping[int, KubernetesVersion]] = {
    int(one.name.partition(".")[2]): one for one in KUBE_VERSIONS.values() if one.name.count(".") == 1
}
_OLDEST: Final = min(_SUPPORTED)
_NEWEST: Final = max(_SUPPORTED)


def kubelet_version(node: Mapping[str, Any]) -> str:
    """Return what a node's status says of its kubelet; "" if it says nothing."""
    status = node.get("status")
    info = status.get("nodeInfo") if isinstance(status, Mapping) else None
    return str(info.get("kubeletVersion") or "") if isinstance(info, Mapping) else ""
