"""Tests that the state followed claim by claim always equals the state computed from all claims."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.devices.claims import allocation, controlled_by
from kschedd.devices.extended_resources import ANNOTATION, CreatedClaims
from kschedd.devices.pools.allocated import AllocatedState, InUse, held_devices
from tests.devices.made import DRIVER, claim_raw, exact

_KEYS = ("default/a", "default/b", "default/c")

result = st.builds(
    lambda pool, name, share, consumed, admin: {
        "driver": DRIVER,
        "pool": pool,
        "device": name,
        **({"shareID": "s"} if share else {}),
        **({"consumedCapacity": {"memory": consumed}} if share and consumed else {}),
        **({"adminAccess": True} if admin else {}),
    },
    st.sampled_from(("n1", "n2")),
    st.sampled_from(("g0", "g1")),
    st.booleans(),
    st.sampled_from((None, "1Gi", "300Mi")),
    st.sampled_from((False, False, False, True)),
)
allocations = st.none() | st.lists(result, max_size=3).map(lambda results: {"devices": {"results": results}})
changes = st.lists(
    st.tuples(st.sampled_from(("claim", "gone", "in flight", "all")), st.sampled_from(_KEYS), allocations), max_size=25
)


def claim(key: str, allocated: Any) -> Object:
    status = {} if allocated is None else {"status": {"allocation": allocated}}
    return parse({**claim_raw(key.partition("/")[2], exact("r")), **status})


def reported(state: AllocatedState) -> Any:
    amounts = {device: {name: each for name, each in used.items() if each} for device, used in state.capacity.items()}
    return state.whole, state.shared, amounts


@given(changes)
def test_what_is_in_use_follows_each_claim(steps: list[tuple[str, str, Any]]) -> None:
    in_use, claims, in_flight = InUse(), {}, {}
    for what, key, allocated in steps:
        stamp, before = in_use.pools.at, reported(in_use.state)
        before = (before[0].copy(), before[1].copy(), before[2])
        if what == "in flight":
            in_flight[key] = allocated
            in_use.take_in_flight(key, allocated)
        elif what == "all":
            claims = {each: claim(each, allocated) for each in _KEYS if each <= key}
            in_use.take_all(claims)
        else:
            claims[key] = claim(key, None if what == "gone" else allocated)
            in_use.take(key, claims[key] if what == "claim" else None)
        held = []
        for each in _KEYS:
            of_claim = list(held_devices(allocation(claims[each]) if each in claims else None))
            held += of_claim or held_devices(in_flight.get(each))
        assert reported(in_use.state) == reported(AllocatedState.of(held))
        changed = in_use.pools.since(stamp)
        assert changed is not None
        after = reported(in_use.state)
        differ = {(device.driver, device.pool) for part in (0, 1) for device in before[part] ^ after[part]}
        differ |= {
            (device.driver, device.pool)
            for device in before[2].keys() | after[2].keys()
            if before[2].get(device) != after[2].get(device)
        }
        assert differ <= set(changed)


@given(changes)
def test_created_claims_are_found_by_their_pod(steps: list[tuple[str, str, Any]]) -> None:
    created, there = CreatedClaims(), {}
    pods = [Pod.from_raw({"kind": "Pod", "metadata": {"name": uid, "uid": uid}, "spec": {}}) for uid in ("p", "q")]
    for number, (what, key, allocated) in enumerate(steps):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pq"[number % 2], "controller": True}
        meta = {"name": key.partition("/")[2], "namespace": "default", "ownerReferences": [owner]}
        meta["annotations"] = {ANNOTATION: "false" if allocated is None else "true"}
        made = parse({**claim_raw(meta["name"], exact("r")), "metadata": meta})
        if what == "gone":
            there.pop(key, None)
            created.take(key, None)
        elif what == "all":
            created.take_all(there)
        else:
            there[key] = made
            created.take(key, made)
        for of in pods:
            found = created.of(of)
            fitting = [
                one for one in there.values() if one.annotations[ANNOTATION] == "true" and controlled_by(one, of)
            ]
            assert found in fitting if fitting else found is None
