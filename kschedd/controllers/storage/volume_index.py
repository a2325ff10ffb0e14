"""Indexes of volumes by StorageClass and by claimRef, and of unbound claims by StorageClass.

The volume controller owns the indexes, and updates them with every event about claims and volumes, in order.
"""

from collections.abc import Iterable

from kschedd.api.objects import Object
from kschedd.storage.claims import BIND_COMPLETED, class_of, volume_of
from kschedd.storage.volumes import Volume


class VolumeIndex:
    def __init__(self) -> None:
        self._volumes: dict[str, Volume] = {}
        self._by_class: dict[str, dict[str, Volume]] = {}
        self._by_claim: dict[str, dict[str, Volume]] = {}  # "namespace/name" of a claimRef -> name -> volume
        # class -> keys of its unbound claims; "\0" in place of a class: bound claims
        self._waiting: dict[str, dict[str, None]] = {}
        self._naming: dict[str, dict[str, None]] = {}  # volume name -> keys of claims with this volumeName
        self._claims: dict[str, tuple[str, str]] = {}  # key -> (class, or "\0" if bound, volumeName)

    # --- volumes -----------------------------------------------------------------------------------------------

    def put_volume(self, obj: Object) -> None:
        self.forget_volume(obj)
        volume = Volume.of(obj)
        self._volumes[obj.name] = volume
        self._by_class.setdefault(volume.storage_class, {})[obj.name] = volume
        if volume.claim_ref is not None:
            key = f"{volume.claim_ref.namespace}/{volume.claim_ref.name}"
            self._by_claim.setdefault(key, {})[obj.name] = volume

    def forget_volume(self, obj: Object) -> None:
        old = self._volumes.pop(obj.name, None)
        if old is None:
            return
        del self._by_class[old.storage_class][obj.name]
        if old.claim_ref is not None:
            key = f"{old.claim_ref.namespace}/{old.claim_ref.name}"
            del self._by_claim[key][obj.name]
            if not self._by_claim[key]:
                del self._by_claim[key]

    def of_class(self, storage_class: str, claim: str) -> Iterable[Volume]:
        """Return the volumes to which a claim may be bound: those of its class, and those whose claimRef names it."""
        return {**self._by_claim.get(claim, {}), **self._by_class.get(storage_class, {})}.values()

    def reserved_by(self, claim: str) -> list[str]:
        """Return the names of the volumes whose claimRef names the claim."""
        return list(self._by_claim.get(claim, ()))

    # --- claims ------------------------------------------------------------------------------------------------

    def put_claim(self, claim: Object) -> None:
        self.forget_claim(claim)
        waits_for = "\0" if BIND_COMPLETED in claim.annotations else class_of(claim)
        named = volume_of(claim)
        self._claims[claim.key] = (waits_for, named)
        self._waiting.setdefault(waits_for, {})[claim.key] = None
        if named:
            self._naming.setdefault(named, {})[claim.key] = None

    def forget_claim(self, claim: Object) -> None:
        old = self._claims.pop(claim.key, None)
        if old is None:
            return
        waits_for, named = old
        del self._waiting[waits_for][claim.key]
        if named:
            del self._naming[named][claim.key]
            if not self._naming[named]:
                del self._naming[named]

    def waiting_for_class(self, storage_class: str) -> list[str]:
        return list(self._waiting.get(storage_class, ()))

    def concerned(self, volume: Object) -> list[str]:
        """Return the keys of the claims to reconcile after a change of the volume."""
        keys = dict.fromkeys(self._naming.get(volume.name, ()))
        ref = volume.spec.get("claimRef")
        if ref is None:
            keys.update(dict.fromkeys(self.waiting_for_class(class_of(volume))))
        else:
            keys[f"{ref.get('namespace') or ''}/{ref.get('name') or ''}"] = None
        return list(keys)
