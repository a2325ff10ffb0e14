import pytest

from kschedd.api.objects import Object, parse
from kschedd.api.text.times import seconds
from kschedd.store import leases
from kschedd.store.leases import RENEWED_EVERY, Renewed, renewed
from kschedd.store.objects.listing import raw_in_order
from kschedd.store.store import Store

NOW = seconds("2026-01-01T00:00:35Z")


def lease(name: str) -> Object:
    meta = {"name": name, "namespace": "kube-node-lease", "uid": name, "annotations": {RENEWED_EVERY: "10"}}
    spec = {"holderIdentity": name, "renewTime": "2026-01-01T00:00:00.250000Z"}
    return parse({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec})


def test_a_lease_has_the_latest_renewal_that_was_due() -> None:
    assert renewed(lease("n1"), NOW).spec == {"holderIdentity": "n1", "renewTime": "2026-01-01T00:00:30.250000Z"}


def test_of_many_leases_those_are_worked_out_that_somebody_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    worked_out: list[str] = []

    def noted(each: Object, now: float) -> Object:
        worked_out.append(each.name)
        return renewed(each, now)

    monkeypatch.setattr(leases, "renewed", noted)
    found = Renewed([lease(f"n{number}") for number in range(10)], NOW)
    assert len(found[2:5]) == 3
    assert worked_out == []
    assert [each.name for each in found[2:5]] == ["n2", "n3", "n4"] == worked_out


def test_a_list_of_leases_is_worked_out_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    def counted(each: Object, now: float) -> Object:
        nonlocal count
        count += 1
        return renewed(each, now)

    monkeypatch.setattr(leases, "renewed", counted)
    store = Store(objects=[lease(f"n{number}") for number in range(1_000)], version=1, now=lambda: NOW)
    present = store.present("Lease")
    assert count == 0
    seen: list[int] = []
    steps = raw_in_order(present)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            items = done.value
            break
        seen.append(count)
    assert {item["spec"]["renewTime"] for item in items} == {"2026-01-01T00:00:30.250000Z"}
    assert max(after - before for before, after in zip([0, *seen], seen, strict=False)) < 500
    assert [item["metadata"]["name"] for item in items] == sorted(f"n{number}" for number in range(1_000))
