"""Tests that the cost of every write and list over HTTP is at most n log n, including effects on the event loop."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote

import pytest
import trio.testing

from kschedd.service.workers import AtOnce
from tests.apiserver.asking import JSON, MERGE, STRATEGIC, Asker, asking
from tests.cost import GROWTH, counting
from tests.metering import metered, until_settled
from tests.store.manifests import workload

MAPS: Final = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"

Request = tuple[str, str, Any, str]  # method, target, body, content type


@pytest.fixture(autouse=True, scope="module")
def every_turn_is_counted() -> Iterator[None]:
    with metered():
        yield


def values(size: int) -> dict[str, str]:
    return {f"k{number}": "v" for number in range(size)}


def config_map(size: int) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": values(size)}


def deployment(size: int) -> dict[str, Any]:
    raw = workload("Deployment", "d", replicas=0)
    raw["spec"]["selector"] = {"matchLabels": values(size)}
    raw["spec"]["template"]["metadata"] = {"labels": values(size)}
    return raw


def containers(size: int) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": f"c{n}", "image": "i"} for n in range(size)]}}}}


REQUESTS: Final[dict[str, Callable[[int], Request]]] = {
    "create": lambda n: ("POST", MAPS, config_map(n), JSON),
    "create-yaml": lambda n: ("POST", MAPS, json.dumps(config_map(n)).encode(), "application/yaml"),
    "create-a-budget": lambda n: (
        "POST",
        BUDGETS,
        {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": values(n)}}},
        JSON,
    ),
    "create-a-deployment": lambda n: ("POST", DEPLOYMENTS, deployment(n), JSON),
    "create-of-unknown-fields": lambda n: (
        "POST",
        f"{MAPS}?fieldValidation=Strict",
        {**config_map(1), **values(n)},
        JSON,
    ),
    "warn-of-unknown-fields": lambda n: ("POST", f"{MAPS}?fieldValidation=Warn", {**config_map(1), **values(n)}, JSON),
    "replace": lambda n: ("PUT", f"{MAPS}/there", {"metadata": {"name": "there"}, "data": values(n)}, JSON),
    "merge": lambda n: ("PATCH", f"{MAPS}/there", {"data": values(n)}, MERGE),
    "merge-strategically": lambda n: ("PATCH", f"{DEPLOYMENTS}/web", containers(n), STRATEGIC),
    "merge-finalizers": lambda n: (
        "PATCH",
        f"{MAPS}/there",
        {"metadata": {"finalizers": [f"x.io/f{number}" for number in range(n)]}},
        STRATEGIC,
    ),
    "json-patch": lambda n: (
        "PATCH",
        f"{MAPS}/there",
        [{"op": "add", "path": f"/data/k{number}", "value": "v"} for number in range(n)],
        PATCH,
    ),
    "apply": lambda n: ("PATCH", f"{MAPS}/m?fieldManager=m", json.dumps(config_map(n)).encode(), APPLY),
    "apply-aliases": lambda n: (
        "PATCH",
        f"{MAPS}/m?fieldManager=m",
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  a: &a v\n" + aliases(n)).encode(),
        APPLY,
    ),
    "list": lambda n: ("GET", f"{MAPS}?labelSelector={quote(','.join(f'k{each}!=v' for each in range(n)))}", None, ""),
    "delete": lambda n: (
        "DELETE",
        f"{MAPS}?labelSelector={quote(','.join(f'k{each}=v' for each in range(n)))}",
        None,
        "",
    ),
}


def aliases(size: int) -> str:
    return "".join(f"  k{number}: *a\n" for number in range(size))


async def cost(api: Asker, request: Request) -> int:
    """Return the cost of a request, including all work that follows from it."""
    method, target, body, media = request
    with counting() as counted:
        answer = await api.ask(method, target, body, content_type=media)
        await trio.testing.wait_all_tasks_blocked()
    assert answer.status < 500, answer.body
    return counted.units


async def cost_of(make: Callable[[int], Request], size: int) -> int:
    async with asking() as api:
        api.face.services.shares.workers = AtOnce()  # type: ignore[assignment]  # threads would not be counted
        await api.create(MAPS, {"metadata": {"name": "there"}, "data": {"a": "b"}})
        await api.create(DEPLOYMENTS, workload("Deployment", replicas=0))
        await trio.testing.wait_all_tasks_blocked()
        return await cost(api, make(size))


@pytest.mark.parametrize("name", REQUESTS)
async def test_twice_the_request_costs_at_most_little_more_than_twice(
    autojump_clock: trio.testing.MockClock, name: str
) -> None:
    make = REQUESTS[name]
    await cost_of(make, 10)  # excludes imports, and caches that do not depend on the input
    for _ in until_settled():
        small, large = await cost_of(make, 300), await cost_of(make, 600)
    assert large <= GROWTH * small
