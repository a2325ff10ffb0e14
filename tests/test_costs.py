"""Tests that requests cost at most n log n of their size, whichever part of them is long."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kschedd.api.schemas.unmarshal_errors import quantity_error
from kschedd.api.selecting.selector_text import parse_field_selector, parse_selector_text
from kschedd.api.selecting.selectors import from_map, parse_label_selector
from kschedd.api.text.documents import read_documents
from kschedd.apiserver.codec.bodies import read_body, read_json
from kschedd.config.parsing.reading import seconds_of
from kschedd.store.patches.json_patch import json_patch
from kschedd.store.patches.patching import patched, read_configuration
from kschedd.store.store import Store
from tests.cost import GROWTH, cost_again, growth_of
from tests.metering import metered
from tests.store.manifests import Clock, pod, workload

Work = Callable[[], Any]


@pytest.fixture(autouse=True, scope="module")
def every_turn_is_counted() -> Iterator[None]:
    with metered():
        yield


MAP: Any = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


def labels(size: int) -> dict[str, str]:
    return {f"k{number}": "v" for number in range(size)}


def selecting(text: Callable[[int], str]) -> Callable[[int], Work]:
    """Measure parsing a selector of this many terms, and evaluating it for a matching and another object."""

    def work(size: int) -> Work:
        def select() -> None:
            selector = parse_selector_text(text(size))
            selector.matches(labels(size))
            selector.matches({})

        return select

    return work


def selecting_fields(size: int) -> Work:
    text = ",".join(f"metadata.name!=v{number}" for number in range(size))
    return lambda: parse_field_selector(text).matches(MAP)


def selector_of(make: Callable[[dict[str, str]], Any]) -> Callable[[int], Work]:
    def work(size: int) -> Work:
        wanted = labels(size)
        return lambda: make(wanted).matches(wanted)

    return work


def expressions(size: int) -> Work:
    raw = {"matchExpressions": [{"key": f"k{n}", "operator": "NotIn", "values": ["a", "b"]} for n in range(size)]}
    return lambda: parse_label_selector(raw).matches({"k1": "c"})


def yaml(text: Callable[[int], str]) -> Callable[[int], Work]:
    def work(size: int) -> Work:
        made = text(size)
        return lambda: read_configuration(made)

    return work


def repeated_in_json(size: int) -> Work:
    data = ("{" + ",".join('"a":1' for _ in range(size)) + "}").encode()
    return lambda: read_json(data)


def created(raw: Callable[[int], dict[str, Any]]) -> Callable[[int], Work]:
    def work(size: int) -> Work:
        store, made = Store(now=Clock()), raw(size)
        return lambda: store.create(made)

    return work


def changed(kind: str, patch: Callable[[int], Any], patch_type: Any = "strategic") -> Callable[[int], Work]:
    def work(size: int) -> Work:
        store, made = Store(now=Clock()), patch(size)
        store.create(MAP if kind == "ConfigMap" else workload(kind, "a"))
        return lambda: store.patch(kind, "default", "a", made, patch_type)

    return work


def budget(size: int) -> dict[str, Any]:
    spec = {"minAvailable": 1, "selector": {"matchLabels": labels(size)}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"}, "spec": spec}


def deployment(size: int) -> dict[str, Any]:
    raw = workload("Deployment", "a")
    raw["spec"]["selector"] = {"matchLabels": labels(size)}
    raw["spec"]["template"]["metadata"] = {"labels": labels(size)}
    return raw


def containers(size: int) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": f"c{n}", "image": "i"} for n in range(size)]}}}}


def finalizers(size: int) -> dict[str, Any]:
    return {"metadata": {"finalizers": [f"x.io/f{n}" for n in range(size)]}}


def moves(size: int) -> list[dict[str, Any]]:
    """Return a patch that moves the same large value back and forth."""
    there = {"op": "move", "from": "/data", "path": "/x"}
    back = {"op": "move", "from": "/x", "path": "/data"}
    return [{"op": "add", "path": "/data", "value": labels(size)}, *[there, back] * (size // 2)]


def patched_containers(size: int) -> Work:
    """Change each container of a Deployment."""
    store = Store(now=Clock())
    store.create(workload("Deployment", "a"))
    store.patch("Deployment", "default", "a", containers(size))
    path = "/spec/template/spec/containers"
    patch = [{"op": "replace", "path": f"{path}/{number}/image", "value": "j"} for number in range(size)]
    return lambda: store.patch("Deployment", "default", "a", patch, "json")


def copies(size: int) -> list[dict[str, Any]]:
    """Return a patch that copies a large value until the limit on copies is reached."""
    value = labels(20_000)
    copied = [{"op": "copy", "from": "/data", "path": f"/d{number}"} for number in range(size)]
    return [{"op": "add", "path": "/data", "value": value}, *copied]


def long_pod(size: int, **spec: Any) -> dict[str, Any]:
    tolerations = [{"key": f"k{n}", "operator": "Equal", "value": "v"} for n in range(size)]
    raw = pod("p", tolerations=tolerations, **spec)
    raw["spec"]["containers"][0]["resources"] = {"claims": [{"name": f"c{n}", "request": "r"} for n in range(size)]}
    raw["spec"]["resourceClaims"] = [{"name": f"c{n}", "resourceClaimName": "x"} for n in range(size)]
    return raw


def confined(size: int) -> dict[str, Any]:
    raw = pod("p")
    raw["spec"]["containers"] = containers(size)["spec"]["template"]["spec"]["containers"]
    raw["metadata"]["annotations"] = {
        f"container.apparmor.security.beta.kubernetes.io/c{n}": "unconfined" for n in range(size)
    }
    return raw


def of_a_class(size: int) -> Work:
    store, raw = Store(now=Clock()), long_pod(size, runtimeClassName="c")
    tolerations = [{"key": "a", "operator": "Exists"}]
    of = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "c"}, "handler": "h"}
    store.create({**of, "scheduling": {"tolerations": tolerations}})
    return lambda: store.create(raw)


def updated(size: int) -> Work:
    """Measure an update of a pod with this many tolerations that keeps each of them."""
    store = Store(now=Clock())
    raw = store.create(long_pod(size)).raw
    changed = {**raw, "metadata": {**raw["metadata"], "labels": {"a": "b"}}}
    changed["spec"] = {**raw["spec"], "tolerations": raw["spec"]["tolerations"][::-1]}
    return lambda: store.update(changed)


def running(size: int) -> Work:
    """Measure a kubelet's report of the resources of this many containers."""
    store = Store(now=Clock())
    store.create(confined(size))
    statuses = [{"name": f"c{n}", "image": "i", "imageID": "", "resources": {}} for n in range(size)]
    return lambda: store.patch_status("Pod", "default", "p", {"containerStatuses": statuses})


def applied(field: str, item: Callable[[int], Any]) -> Callable[[int], Work]:
    """Measure applying a list with a key by a manager, after another manager applied it in another order."""

    def work(size: int) -> Work:
        items = [item(number) for number in range(size)]
        first = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, field: items}
        store, again = Store(now=Clock()), {**first, field: items[::-1]}
        store.server_side_apply("ServiceAccount", "default", "a", first, "me")
        return lambda: store.server_side_apply("ServiceAccount", "default", "a", again, "you", force=True)

    return work


def stating_managers(operation: str) -> Callable[[int], Work]:
    """Measure creating an object that states its own managers, and changing it by another manager."""

    def work(size: int) -> Work:
        entry = {"operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1"}
        entries = [
            {**entry, "manager": f"m{number}", "fieldsV1": {"f:data": {f"f:k{number}": {}}}} for number in range(size)
        ]
        raw = {**MAP, "metadata": {**MAP["metadata"], "managedFields": entries}, "data": labels(size)}

        def write() -> None:
            store = Store(now=Clock())
            store.create(raw, manager="me")
            config = {**MAP, "data": {"k0": "x"}}
            store.server_side_apply("ConfigMap", "default", "a", config, "me", force=True)

        return write

    return work


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(selecting(lambda n: ",".join(f"k{i}=v" for i in range(n))), id="labels-equal"),
        pytest.param(selecting(lambda n: ",".join(f"k{i}!=w" for i in range(n))), id="labels-differ"),
        pytest.param(selecting(lambda n: ",".join(f"k1!=w{i}" for i in range(n))), id="one-label-differs"),
        pytest.param(selecting(lambda n: f"k1 in ({','.join(f'w{i}' for i in range(n))})"), id="one-of-many-values"),
        pytest.param(selecting(lambda n: ",".join(f"k{i}" for i in range(n))), id="labels-exist"),
        pytest.param(selecting_fields, id="fields-differ"),
        pytest.param(selector_of(lambda each: parse_label_selector({"matchLabels": each})), id="match-labels"),
        pytest.param(selector_of(from_map), id="selector-of-a-service"),
        pytest.param(expressions, id="match-expressions"),
        pytest.param(yaml(lambda n: "a: [" + ",".join(["x"] * n) + "]\n"), id="yaml-list"),
        pytest.param(yaml(lambda n: "".join(f"k{i}: v\n" for i in range(n))), id="yaml-map"),
        pytest.param(yaml(lambda n: "a: &a x\n" + "".join(f"k{i}: *a\n" for i in range(n))), id="yaml-aliases"),
        pytest.param(
            yaml(lambda n: "b: &a {x: 1}\n" + "".join(f"k{i}: {{<<: *a}}\n" for i in range(n))), id="yaml-merges"
        ),
        pytest.param(yaml(lambda n: "a: 1\n" * n), id="yaml-one-key-repeated"),
        pytest.param(yaml(lambda n: "- !x y\n" * n), id="yaml-tags"),
        pytest.param(repeated_in_json, id="json-one-key-repeated"),
        pytest.param(created(budget), id="budget-with-many-labels"),
        pytest.param(created(deployment), id="deployment-with-many-labels"),
        pytest.param(created(long_pod), id="pod-with-many-tolerations-and-claims"),
        pytest.param(created(confined), id="pod-with-many-containers-and-annotations"),
        pytest.param(of_a_class, id="pod-with-many-tolerations-and-those-of-its-class"),
        pytest.param(updated, id="update-of-many-tolerations"),
        pytest.param(running, id="statuses-of-many-containers"),
        pytest.param(stating_managers("Update"), id="managers-that-updated"),
        pytest.param(stating_managers("Apply"), id="managers-that-applied"),
        pytest.param(applied("secrets", lambda n: {"name": f"s{n}"}), id="apply-of-items-with-a-key"),
        pytest.param(changed("Deployment", containers), id="strategic-merge-of-containers"),
        pytest.param(changed("ConfigMap", finalizers), id="strategic-merge-of-finalizers"),
        pytest.param(patched_containers, id="json-patch-of-many-containers"),
        pytest.param(changed("ConfigMap", moves, "json"), id="json-patch-moves"),
        pytest.param(changed("ConfigMap", copies, "json"), id="json-patch-copies"),
    ],
)
def test_twice_the_input_costs_at_most_little_more_than_twice(work: Callable[[int], Work]) -> None:
    assert growth_of(work, 300) <= GROWTH


def doublings(times: int) -> list[dict[str, Any]]:
    """Return a patch whose result doubles in size with each step."""
    steps: list[dict[str, Any]] = [{"op": "add", "path": "/x0", "value": [[]] * 64}]
    for number in range(times):
        steps += [
            {"op": "copy", "from": f"/x{number}", "path": f"/y{number}"},
            {"op": "add", "path": f"/x{number + 1}", "value": []},
            {"op": "move", "from": f"/x{number}", "path": f"/x{number + 1}/0"},
            {"op": "move", "from": f"/y{number}", "path": f"/x{number + 1}/1"},
        ]
    return steps


def test_a_patch_that_doubles_its_outcome_is_refused_before_it_costs_much() -> None:
    def refused(times: int) -> Work:
        return lambda: json_patch(MAP, doublings(times))

    assert cost_again(refused(12)) < 2_000_000
    assert cost_again(refused(24)) < 1.1 * cost_again(refused(12))


def bomb(levels: int) -> str:
    """Return YAML whose aliases stand for 9 ** `levels` values."""
    text = "k0: &k0 [x,x,x,x,x,x,x,x,x]\n"
    for number in range(1, levels):
        text += f"k{number}: &k{number} [{','.join([f'*k{number - 1}'] * 9)}]\n"
    return text


@pytest.mark.parametrize("content_type", ["", "application/yaml"])
def test_aliases_of_aliases_are_refused_before_they_cost_much(content_type: str) -> None:
    def read(levels: int) -> Work:
        text = bomb(levels)
        if content_type:
            return lambda: read_body(text.encode(), content_type, "ConfigMap")
        return lambda: read_configuration(text)

    assert cost_again(read(8)) < 10_000
    assert cost_again(read(16)) < 2.3 * cost_again(read(8))


def test_aliases_of_a_long_text_are_bounded_by_its_length() -> None:
    text = "a: &a " + "x" * 100_000 + "\n" + "".join(f"k{number}: *a\n" for number in range(100))
    (document,) = read_documents(text)
    assert [fault.why for fault in document.faults] == [
        "the aliases of this document expand to more than 100000 values"
    ]


def test_a_value_is_moved_without_a_copy() -> None:
    live = {**MAP, "data": labels(1_000)}
    once = [{"op": "move", "from": "/data", "path": "/x"}]
    back = [*once, {"op": "move", "from": "/x", "path": "/data"}]
    more = cost_again(lambda: json_patch(live, back * 100)) - cost_again(lambda: json_patch(live, back))
    assert more < 20_000
    assert json_patch(live, once)["x"] == live["data"]
    assert patched(live, back, "json") == live


def test_what_is_no_json_is_refused_on_every_face() -> None:
    for value in ("!!binary aGk=", ".nan", "-.inf", "!x y", "{? [a] : b}", "&a [*a]"):
        text = f"x: {value}\n"
        for read in (read_configuration, lambda each: read_body(each.encode(), "application/yaml", "W")):
            with pytest.raises(Exception, match=r"yaml: ") as refused:
                read(text)
            assert getattr(refused.value, "code", 400) == 400, value
        (document,) = read_documents(text)
        assert document.faults, value


def test_a_long_selector_that_is_stored_has_been_parsed_where_it_was_validated() -> None:
    store = Store(now=Clock())
    made = store.create(budget(1_000)).spec["selector"]
    assert 20 * cost_again(lambda: parse_label_selector(made)) < cost_again(
        lambda: parse_label_selector({"matchLabels": labels(1_001)})
    )


def test_texts_of_many_digits_are_read_once() -> None:
    """Terminate quickly, without backtracking over the digits for each digit."""
    digits = "0" * 300_000
    assert quantity_error(f"{digits}x").startswith("quantities must match")
    assert quantity_error(f"{digits}.{digits}x").startswith("quantities must match")
    assert seconds_of(digits) is None
    assert seconds_of(f"{digits}1h") == 3600
    assert seconds_of(f"{digits}.{digits}") is None
