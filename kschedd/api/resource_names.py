"""What sort of resource a name stands for.

Source: Kubernetes v1.34, apis/core/v1/helper/helpers.go (IsExtendedResourceName, IsNativeResource,
IsHugePageResourceName, IsAttachableVolumeResourceName, IsPrefixedNativeResource) and scheduler/util/utils.go
(IsScalarResourceName).
"""

from functools import lru_cache

from kschedd.api.validation_names import qualified_name


@lru_cache(1 << 12)
def is_extended(name: str) -> bool:
    """A resource that Kubernetes itself knows nothing of, such as `example.com/gpu`."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return not qualified_name("requests." + name)


@lru_cache(1 << 12)
def is_scalar(name: str) -> bool:
    """A resource that is counted besides cpu, memory and ephemeral-storage; any other name is not looked at."""
    return (
        is_extended(name)
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or ("/" in name and "kubernetes.io/" in name)
    )
