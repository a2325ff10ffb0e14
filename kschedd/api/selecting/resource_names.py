"""Classification of resources by name.

Source: Kubernetes v1.34, apis/core/v1/helper/helpers.go (IsExtendedResourceName, IsNativeResource,
IsHugePageResourceName, IsAttachableVolumeResourceName, IsPrefixedNativeResource) and scheduler/util/utils.go
(IsScalarResourceName).
"""

from functools import lru_cache

from kschedd.api.selecting.names import qualified_name


@lru_cache(1 << 10)
def is_extended(name: str) -> bool:
    """Return whether this is an extended resource, outside the kubernetes.io domain, such as `example.com/gpu`."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not qualified_name("requests." + name)


@lru_cache(1 << 10)
def is_scalar(name: str) -> bool:
    """Return whether the resource counts in addition to cpu, memory and ephemeral-storage; other names are ignored."""
    return (
        is_extended(name)
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or ("/" in name and "kubernetes.io/" in name)
    )
