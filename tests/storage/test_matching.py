"""Tests that the prepared candidates and the plain rule select the same volume for a claim."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.objects import Object
from kschedd.storage.matching import candidates
from kschedd.storage.volumes import StorageError, Volume
from tests.full_run import examples

ZONES = ("a", "b", "c")


def volume(name: str, size: int = 5, **spec: Any) -> Volume:
    meta = {"name": name, "labels": spec.pop("labels", {})}
    if spec.pop("deleting", False):
        meta["deletionTimestamp"] = "2025-01-01T00:00:00Z"
    status = {"phase": spec.pop("phase", "Available")}
    base = {"capacity": {"storage": f"{size}Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c"}
    raw = {"kind": "PersistentVolume", "metadata": meta, "spec": {**base, **spec}, "status": status}
    return Volume.of(Object.from_raw(raw))


def claim(size: int = 5, **spec: Any) -> Object:
    base: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "storageClassName": "c"}
    base |= {"resources": {"requests": {"storage": f"{size}Gi"}}}
    meta = {"name": "data", "namespace": "default", "uid": "u1"}
    return Object.from_raw({"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {**base, **spec}})


def in_zones(*terms: tuple[str, ...]) -> dict[str, Any]:
    return {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]} for zones in terms
            ]
        }
    }


def plain(wanted: Object, volumes: list[Volume], labels: dict[str, str], taken: set[str]) -> Volume | None:
    """Return the result of upstream's FindMatchingVolume, written as a loop."""
    smallest = None
    for each in volumes:
        if each.name in taken or (each.claim_ref is not None and not each.reserved_for(wanted)):
            continue
        if each.capacity < 5 * 2**30 * 10**9 or each.mode != "Filesystem" or each.obj.deleting:
            continue
        usable = each.usable_from(labels)
        if each.reserved_for(wanted):
            return each if usable else None
        if each.phase != "Available" or each.storage_class != "c" or not usable:
            continue
        if "ReadWriteOnce" not in each.access_modes:
            continue
        if smallest is None or each.capacity < smallest.capacity:
            smallest = each
    return smallest


affinities = st.lists(st.lists(st.sampled_from(ZONES), min_size=1, max_size=2).map(tuple), max_size=2)
refs = st.sampled_from(
    [None, None, None, {"namespace": "default", "name": "data"}, {"namespace": "default", "name": "other", "uid": "x"}]
)


@st.composite
def some_volumes(draw: st.DrawFn) -> list[Volume]:
    made = []
    for number in range(draw(st.integers(0, 8))):
        spec: dict[str, Any] = {
            "phase": draw(st.sampled_from(["Available", "Available", "Pending"])),
            "storageClassName": draw(st.sampled_from(["c", "c", "d"])),
            "accessModes": draw(st.sampled_from([["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOnce", "X"]])),
            "volumeMode": draw(st.sampled_from(["Filesystem", "Filesystem", "Block"])),
            "deleting": draw(st.sampled_from([False, False, False, True])),
        }
        if (ref := draw(refs)) is not None:
            spec["claimRef"] = ref
        if terms := draw(affinities):
            spec["nodeAffinity"] = in_zones(*terms)
        made.append(volume(f"v{number}", draw(st.integers(4, 8)), **spec))
    return made


@settings(max_examples=examples(300), deadline=None)
@given(
    some_volumes(), st.sampled_from([{}, *({"zone": zone} for zone in ZONES)]), st.sets(st.sampled_from(["v0", "v1"]))
)
def test_candidates_give_what_the_plain_loop_gives(
    volumes: list[Volume], labels: dict[str, str], taken: set[str]
) -> None:
    wanted = claim()
    found = candidates(wanted, volumes).on(labels, taken)
    assert found is plain(wanted, volumes, labels, taken)


def test_volume_meant_for_the_claim_is_taken_though_another_is_smaller() -> None:
    meant = volume(
        "meant", 50, claimRef={"namespace": "default", "name": "data"}, phase="Pending", storageClassName="x"
    )
    assert candidates(claim(), [volume("small"), meant]).on({}) is meant


def test_volume_meant_for_the_claim_that_is_elsewhere_leaves_nothing() -> None:
    meant = volume("meant", claimRef={"namespace": "default", "name": "data"}, nodeAffinity=in_zones(("a",)))
    assert candidates(claim(), [volume("small"), meant]).on({"zone": "b"}) is None


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        pytest.param({"labels": {"grade": "gold"}}, True, id="selector-met"),
        pytest.param({"labels": {"grade": "tin"}}, False, id="selector-not-met"),
        pytest.param({"labels": {"grade": "gold"}, "volumeAttributesClassName": "quick"}, False, id="other-attributes"),
        pytest.param({"labels": {"grade": "gold"}, "volumeMode": "Block"}, False, id="other-mode"),
    ],
)
def test_claim_with_a_selector(spec: dict[str, Any], fits: bool) -> None:
    wanted = claim(selector={"matchLabels": {"grade": "gold"}})
    assert (candidates(wanted, [volume("v", **spec)]).on({}) is not None) is fits


def test_selector_that_cannot_be_read_is_an_error_in_upstreams_words() -> None:
    wanted = claim(selector={"matchExpressions": [{"key": "a", "operator": "Is", "values": ["b"]}]})
    with pytest.raises(StorageError, match="error creating internal label selector for claim: default/data: "):
        candidates(wanted, [])


def test_attributes_class_needs_its_feature_gate() -> None:
    wanted = claim(volumeAttributesClassName="quick")
    assert candidates(wanted, [volume("v", volumeAttributesClassName="quick")]).on({}) is not None
    with pytest.raises(StorageError, match="VolumeAttributesClass is disabled"):
        candidates(wanted, [], attributes_classes=False)
