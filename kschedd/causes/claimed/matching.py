"""Causes of unbound claims: no existing volume satisfies the claim, or all suitable volumes belong to other claims.

Existing volumes matter only if no provisioner creates one, or if the claim names its volume.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.quantity import format_nanos
from kschedd.api.selecting.selectors import SelectorError, parse_label_selector
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.claimed.claims import (
    ClaimUse,
    as_many_as_scheduled,
    asking,
    class_word,
    of_class,
    provisioning_classes,
    storage_text,
)
from kschedd.causes.findings import CHANGE_OBJECT, FoundCause, RemedyOption, named
from kschedd.causes.near import nearest
from kschedd.causes.steps import patched
from kschedd.causes.words import counted, joined, some
from kschedd.storage.claims import FILESYSTEM, class_of, requested, volume_of
from kschedd.storage.volumes import AVAILABLE, Volume

Spec = dict[str, Any]
_VOLUME: Final = "PersistentVolume"
_MOST_CLASSES: Final = 2  # maximum number of other classes to propose


@attrs.frozen(eq=False)
class _Gap:
    """A difference: the claim requests `asks`, the volume has `has`, and `mend` lowers the claim's request."""

    part: str
    asks: str
    has: str
    mend: Callable[[Spec], None]

    @property
    def field(self) -> str:
        return f"spec.{self.part} of the claim"


def no_volume(case: Case, use: ClaimUse, claim: Object) -> FoundCause | None:
    """Return why no existing volume satisfies the claim; None if one does, or if it depends on the node."""
    wanted = volume_of(claim)
    volumes = [Volume.of(each) for each in case.store.list(_VOLUME)]
    if wanted:
        volumes = [each for each in volumes if each.name == wanted]
        if not volumes:
            return _no_such_volume(case, use, claim, wanted)
    same = [each for each in volumes if each.storage_class == class_of(claim) or wanted]
    usable = [each for each in same if _free(each, claim)]
    gaps = {each.name: _gaps(claim, each, by_name=bool(wanted)) for each in usable}
    if any(not found for found in gaps.values()):
        return None
    if usable:
        return _mismatch(case, use, claim, usable, gaps)
    if same:
        return _all_taken(case, use, claim, same)
    return of_no_class(case, use, claim)


def suiting(case: Case, claim: Object) -> list[Volume]:
    """Return the free volumes of the claim's class that satisfy the claim."""
    volumes = [Volume.of(each) for each in case.store.list(_VOLUME) if class_of(each) == class_of(claim)]
    return [each for each in volumes if _free(each, claim) and not _gaps(claim, each)]


def _free(volume: Volume, claim: Object) -> bool:
    if volume.deleting or (volume.claim_ref is not None and not volume.reserved_for(claim)):
        return False
    return volume.phase == AVAILABLE or volume.reserved_for(claim) or not volume.phase


def _gaps(claim: Object, volume: Volume, *, by_name: bool = False) -> list[_Gap]:
    """Return the differences that keep a free volume from being bound to the claim."""
    spec = claim.spec
    found = []
    size = str((volume.obj.spec.get("capacity") or {}).get("storage", "0"))
    if volume.capacity < requested(claim):
        found.append(_Gap("resources", storage_text(spec), size, _asking_for_size(size)))
    modes, offered = list(spec.get("accessModes") or ()), list(volume.obj.spec.get("accessModes") or ())
    if not set(modes) <= set(offered):
        found.append(_Gap("accessModes", "/".join(modes), "/".join(offered), _setting("accessModes", offered)))
    mode = spec.get("volumeMode") or FILESYSTEM
    if mode != volume.mode:
        found.append(_Gap("volumeMode", f"volumeMode {mode}", volume.mode, _setting("volumeMode", volume.mode)))
    attributes = spec.get("volumeAttributesClassName") or ""
    if attributes != volume.attributes_class:
        had = volume.attributes_class or "none"
        mend = _setting("volumeAttributesClassName", volume.attributes_class or None)
        found.append(_Gap("volumeAttributesClassName", f"attributes class {attributes or 'none'}", had, mend))
    if spec.get("selector") is not None and not _selects(spec["selector"], volume):
        labels = ", ".join(f"{key}={value}" for key, value in volume.obj.labels.items()) or "no labels"
        found.append(
            _Gap("selector", f"the labels {_selector_text(spec['selector'])}", labels, _setting("selector", None))
        )
    if by_name and volume.storage_class != class_of(claim):
        had = f"class {volume.storage_class}" if volume.storage_class else "no class"
        mend = _setting("storageClassName", volume.storage_class)
        found.append(_Gap("storageClassName", class_word(claim), had, mend))
    return found


def _selects(raw: Any, volume: Volume) -> bool:
    try:
        return parse_label_selector(raw).matches(volume.obj.labels)
    except SelectorError:
        return False


def _selector_text(raw: Any) -> str:
    try:
        return f"`{parse_label_selector(raw)}`"
    except SelectorError:
        return "of an invalid selector"


def _asking_for_size(size: str) -> Callable[[Spec], None]:
    def change(spec: Spec) -> None:
        spec["resources"]["requests"]["storage"] = size

    return change


def _setting(field: str, value: Any) -> Callable[[Spec], None]:
    def change(spec: Spec) -> None:
        if value is None:
            spec.pop(field, None)
        else:
            spec[field] = value

    return change


# -- free volumes that do not do --------------------------------------------------------------------------------------


def _mismatch(
    case: Case, use: ClaimUse, claim: Object, usable: Sequence[Volume], gaps: dict[str, list[_Gap]]
) -> FoundCause:
    # choose the volume with the fewest differences, and the largest of these
    nearest_one = min(usable, key=lambda each: (len(gaps[each.name]), -each.capacity, each.name))
    lacks = gaps[nearest_one.name]
    wanted = joined([gap.asks for gap in lacks])
    had = joined([gap.has for gap in lacks])
    count = len(usable)
    if volume_of(claim):
        there = f"volume {nearest_one.name}, which it names, has {had}"
    elif count == 1:
        there = f"the only free volume of {class_word(claim)}, {nearest_one.name}, has {had}"
    else:
        there = f"the nearest of {count} free volumes of {class_word(claim)}, {nearest_one.name}, has {had}"

    def change(spec: Spec) -> None:
        for gap in lacks:
            gap.mend(spec)
        if volume_of(claim):
            spec["volumeName"] = nearest_one.name

    return FoundCause(
        "ClaimMatchesNoVolume",
        f"{use} requests {wanted}, and {there}",
        [named(claim), *(ObjectNamed(_VOLUME, "", each.name) for each in usable[:3])],
        [gap.field for gap in lacks],
        [f"{each.name}: {_described(each)}" for each in usable[:4]],
        [
            asking(case, use, f"let {use.written} request {had}", change),
            *_other_classes(case, use, claim),
        ],
    )


def _described(volume: Volume) -> str:
    text = format_nanos(volume.capacity, "BinarySI")
    modes = "/".join(volume.obj.spec.get("accessModes") or ())
    state = volume.phase or AVAILABLE
    ref = volume.claim_ref
    return f"{text}, {modes}, {volume.mode}, {state}" + (f", of claim {ref.namespace}/{ref.name}" if ref else "")


def _other_classes(case: Case, use: ClaimUse, claim: Object) -> list[RemedyOption]:
    names = [each.name for each in provisioning_classes(case.store) if each.name != class_of(claim)]
    return list(of_class(case, use, names[:_MOST_CLASSES]))


def _no_such_volume(case: Case, use: ClaimUse, claim: Object, wanted: str) -> FoundCause:
    there = [each.name for each in case.store.list(_VOLUME)]
    likely = nearest(wanted, there)
    options = []
    if likely is not None:
        options.append(asking(case, use, f"have {use.written} name volume {likely}", _setting("volumeName", likely)))
    return FoundCause(
        "ClaimMatchesNoVolume",
        f"{use} names volume {wanted}, which does not exist" + (f" ({likely} does)" if likely else ""),
        [named(claim), ObjectNamed(_VOLUME, "", wanted)],
        ["spec.volumeName of the claim"],
        [f"volumes: {some(there)}"] if there else [],
        [*options, asking(case, use, f"have {use.written} name no volume", _setting("volumeName", None))],
    )


# -- volumes that are another claim's ---------------------------------------------------------------------------------


def _all_taken(case: Case, use: ClaimUse, claim: Object, volumes: Sequence[Volume]) -> FoundCause:
    left = [each for each in volumes if _is_left(case, each) and not each.deleting and not _gaps(claim, each)]
    own = [each for each in left if each.claim_ref and (each.claim_ref.namespace, each.claim_ref.name) == _key(claim)]
    if left:
        return _released(case, use, claim, (own or left)[0], is_own=bool(own))
    reserved = [each for each in volumes if each.phase == AVAILABLE and each.claim_ref and not _gaps(claim, each)]
    if reserved:
        return _reserved(case, use, claim, reserved)
    count = counted(len(volumes), "volume")
    verb = "is" if len(volumes) == 1 else "are all"
    return FoundCause(
        "ClaimMatchesNoVolume",
        f"no volume is left for {use}: the {count} of {class_word(claim)} {verb} taken by other claims",
        [named(claim), *(ObjectNamed(_VOLUME, "", each.name) for each in volumes[:3])],
        ["spec.storageClassName of the claim"],
        [f"{each.name}: {_described(each)}" for each in volumes[:4]],
        [*_other_classes(case, use, claim), *as_many_as_scheduled(case)],
    )


def misbound(case: Case, use: ClaimUse, claim: Object) -> FoundCause | None:
    """Return the cause of a Lost claim whose volume refers to another claim, or to an earlier claim of this name."""
    obj = case.store.find(_VOLUME, "", volume_of(claim))
    volume = None if obj is None else Volume.of(obj)
    if volume is None or volume.claim_ref is None:
        return None
    ref = volume.claim_ref
    if (ref.namespace, ref.name) == _key(claim):
        return _released(case, use, claim, volume, is_own=True)
    return FoundCause(
        "ClaimLost",
        f"{use} is bound to volume {volume.name}, which refers to claim {ref.namespace}/{ref.name}: two claims name it",
        [named(claim), ObjectNamed(_VOLUME, "", volume.name)],
        ["spec.volumeName of the claim"],
        [f"{volume.name}: {_described(volume)}"],
    )


def _key(claim: Object) -> tuple[str, str]:
    return claim.namespace, claim.name


def _is_left(case: Case, volume: Volume) -> bool:
    """Return whether the claim to which the volume was bound no longer exists."""
    ref = volume.claim_ref
    if ref is None or not ref.uid:
        return False
    there = case.store.find("PersistentVolumeClaim", ref.namespace, ref.name)
    return there is None or there.uid != ref.uid


def _released(case: Case, use: ClaimUse, claim: Object, volume: Volume, *, is_own: bool) -> FoundCause:
    ref = volume.claim_ref
    assert ref is not None, "a released volume refers to its claim"
    before = "an earlier claim of that name" if is_own else f"claim {ref.namespace}/{ref.name}"
    again = patched(volume.obj.raw, [{"op": "remove", "path": "/spec/claimRef"}])
    return FoundCause(
        "VolumeReleased",
        f"{use} waits for a volume of {class_word(claim)}, and volume {volume.name} is {volume.phase or 'Released'}: "
        f"it still refers to {before}, which was deleted",
        [named(claim), ObjectNamed(_VOLUME, "", volume.name)],
        ["spec.claimRef of the volume"],
        [f"{volume.name}: {_described(volume)}, reclaim policy {volume.obj.spec.get('persistentVolumeReclaimPolicy')}"],
        [
            RemedyOption(
                f"make volume {volume.name} available again, with the data of {before}",
                CHANGE_OBJECT,
                steps=[again],
                target=f"persistentvolume/{volume.name}",
            )
        ],
        certain=is_own,
    )


def _reserved(case: Case, use: ClaimUse, claim: Object, volumes: Sequence[Volume]) -> FoundCause:
    """Return the cause: volumes are reserved by name for another claim, or for a misspelling of this claim."""
    by_name = {each.claim_ref.name: each for each in volumes if each.claim_ref is not None}
    likely = nearest(claim.name, by_name)
    same = by_name.get(claim.name) or (by_name[likely] if likely else volumes[0])
    ref = same.claim_ref
    assert ref is not None, "a reserved volume refers to its claim"
    meant = ref.name == claim.name or likely is not None
    operations = [
        {"op": "replace", "path": f"/spec/claimRef/{field}", "value": value}
        for field, value, old in (("namespace", claim.namespace, ref.namespace), ("name", claim.name, ref.name))
        if value != old
    ]
    options = [
        RemedyOption(
            f"reserve volume {same.name} for {claim.namespace}/{claim.name}",
            CHANGE_OBJECT,
            steps=[patched(same.obj.raw, operations)],
            target=f"persistentvolume/{same.name}",
        )
    ]
    return FoundCause(
        "ClaimMatchesNoVolume",
        f"volume {same.name} is reserved for claim {ref.namespace}/{ref.name}, and {use} is in namespace "
        f"{claim.namespace}: no other volume of {class_word(claim)} is free",
        [named(claim), ObjectNamed(_VOLUME, "", same.name)],
        ["spec.claimRef of the volume"],
        [f"{each.name}: {_described(each)}" for each in volumes[:4]],
        [*(options if meant else []), *_other_classes(case, use, claim)],
        certain=meant,
    )


# -- no volumes at all ------------------------------------------------------------------------------------------------


def of_no_class(case: Case, use: ClaimUse, claim: Object) -> FoundCause:
    """Return the cause: no volume exists for a claim without a class, or with a class without a provisioner."""
    name = class_of(claim)
    why = (
        f"which has no provisioner, and there is no volume of class {name}"
        if name
        else 'since it names the class "", which no provisioner serves, and there is none without a class'
    )
    others = [Volume.of(each) for each in case.store.list(_VOLUME)]
    suiting = [each for each in others if _free(each, claim) and not each.claim_ref and not _gaps(claim, each)]
    options: list[RemedyOption] = []
    evidence = []
    if suiting:
        evidence.append(f"suitable free volumes of other classes: {_with_classes(suiting)}")
        options += of_class(case, use, list(dict.fromkeys(each.storage_class for each in suiting))[:1])
    what = f"{use} waits for a volume of class {name}, {why}" if name else f"{use} gets no volume, {why}"
    return FoundCause(
        "ClaimWithoutProvisioner",
        what,
        [named(claim), *([ObjectNamed("StorageClass", "", name)] if name else [])],
        ["spec.storageClassName of the claim"],
        evidence,
        [*options, *_other_classes(case, use, claim)],
    )


def _with_classes(volumes: Iterable[Volume]) -> str:
    return some([f"{each.name} ({each.storage_class or 'no class'})" for each in volumes])
