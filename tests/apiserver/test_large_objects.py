"""Tests that values computed from large objects over HTTP are computed once, and outside of the event loop."""

import threading
from typing import Any

import pytest
import trio.testing

from kschedd.apiserver.handlers import reading
from kschedd.store.managing import MANAGED, with_resolved_entries
from kschedd.store.store import Store
from tests.apiserver.asking import asking
from tests.store.manifests import Clock, pod

PODS = "/api/v1/namespaces/default/pods"


def wide(variables: int) -> dict[str, Any]:
    raw = pod("p")
    raw["spec"]["containers"][0]["env"] = [{"name": f"A{number}", "value": "x"} for number in range(variables)]
    return raw


@pytest.mark.parametrize("accept", ["application/json", "application/json;as=Table;g=meta.k8s.io;v=v1"])
async def test_the_answer_with_a_large_object_is_made_in_a_thread(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    made_in: list[bool] = []
    encode = reading._encode

    def noting(*given: Any) -> Any:
        made_in.append(threading.current_thread() is threading.main_thread())
        return encode(*given)

    monkeypatch.setattr(reading, "_encode", noting)
    async with asking() as api:
        for raw in (pod("small"), wide(1_500)):
            assert (await api.ask("POST", PODS, raw, accept=accept)).status == 201
        for name in ("small", "p"):
            assert (await api.ask("GET", f"{PODS}/{name}", accept=accept)).status == 200
    assert made_in == [True, False, True, False]


@pytest.mark.parametrize("variables", [10, 4_000])
def test_what_the_manager_of_a_new_pod_owns(variables: int) -> None:
    made = Store(now=Clock()).create(wide(variables), manager="me")
    (noted,), (entry,) = made.metadata[MANAGED], with_resolved_entries(made.raw)["metadata"][MANAGED]
    assert ("fieldsV1" in noted) is (variables > 1_000), "of a large pod it is worked out once"
    containers = entry["fieldsV1"]["f:spec"]["f:containers"]['k:{"name":"app"}']
    assert [key for key in containers["f:env"] if key != "."] == [
        f'k:{{"name":"{name}"}}' for name in sorted(f"A{number}" for number in range(variables))
    ]


@pytest.mark.parametrize("kind", ["Pod", "ConfigMap"])
def test_an_object_that_is_too_large_with_its_managers_is_kept_without_them(kind: str) -> None:
    raw = wide(4_000)
    if kind == "ConfigMap":
        meta = {"name": "p", "namespace": "default"}
        raw = {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": {f"k{n}": "x" for n in range(9_000)}}
    size = len(str(Store(now=Clock()).create(raw).raw))
    store = Store(now=Clock(), max_object_bytes=size + 20_000)
    assert MANAGED not in store.create(raw, manager="me").metadata
    assert MANAGED in Store(now=Clock()).create(raw, manager="me").metadata
