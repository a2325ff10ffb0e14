"""Applies manifests to a store one after the other; objects on which other objects depend are applied first.

An invalid manifest is reported, and the others are still applied. An object with a UID comes from a cluster and keeps
its status.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Generic, Protocol, TypeVar

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.decoding import FieldValidation
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import ApiError
from kschedd.store.field_validation import known_fields

_FIRST: Final = ("CustomResourceDefinition", "Namespace", "PriorityClass", "RuntimeClass")


class HasRaw(Protocol):
    @property
    def raw(self) -> dict[str, Any]: ...


M = TypeVar("M", bound=HasRaw)


@attrs.frozen(eq=False)
class AppliedManifest(Generic[M]):
    """The result of applying one manifest: the object and warnings, or the error."""

    manifest: M
    object: Object | None = None
    action: str = ""  # one of: created, configured, unchanged
    warnings: tuple[str, ...] = ()
    refusal: ApiError | None = None


def in_order(manifests: Iterable[M]) -> list[M]:
    """Return the manifests, sorted so that objects on which others depend come first."""
    places = {kind: place for place, kind in enumerate(_FIRST)}
    return sorted(manifests, key=lambda manifest: places.get(manifest.raw["kind"], len(_FIRST)))


def apply_each(
    store: ClusterWriter,
    manifests: Iterable[M],
    validation: FieldValidation = "Warn",
    before: Callable[[M], None] = lambda manifest: None,
    *,
    served: bool = False,
) -> Iterator[AppliedManifest[M]]:
    """Apply the manifests in their order and yield each result; `before` is called before each manifest.

    In objects with a UID, unknown fields only cause warnings, because a dump may come from a newer Kubernetes version.
    `served`: new objects must be of a kind that the cluster serves.
    """
    for manifest in manifests:
        before(manifest)
        try:
            restore = bool((manifest.raw.get("metadata") or {}).get("uid"))
            rule = "Warn" if restore and validation == "Strict" else validation
            raw, warnings = known_fields(manifest.raw, rule, store)
            made, action = store.apply(raw, restore=restore, as_client=served and not restore, annotated=False)
        except ApiError as refusal:
            yield AppliedManifest(manifest, refusal=refusal)
        else:
            yield AppliedManifest(manifest, made, action, warnings)
