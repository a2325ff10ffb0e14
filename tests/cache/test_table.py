"""Tests of resource columns, which are created only for resources that pods request."""

import random
from typing import Any

import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.resources import ResizeRules
from kschedd.cache.table import NodeTable
from kschedd.cache.versions import LABELS
from tests.actors.clusters import node, pod


def made(name: str, **resources: str) -> Node:
    raw: dict[str, Any] = node(name)
    raw["status"] = {"allocatable": {"cpu": "4", "pods": "10", **resources}}
    raw["metadata"] = {**raw["metadata"], "name": name}
    return Node.from_raw(raw)


def test_a_node_with_many_resources_makes_no_column_until_a_pod_asks() -> None:
    table = NodeTable()
    row = table.put_node(made("n1", **{f"example.com/r{number}": "7" for number in range(5000)}))
    assert len(table.allocatable) == len(table.resources) == 3
    number = table.resource("example.com/r4711")
    assert table.allocatable[number, row] == 7
    assert len(table.allocatable) == 4


def test_columns_are_copied_a_logarithmic_number_of_times() -> None:
    table = NodeTable()
    rooms = set()
    kept: list[Any] = []  # kept in memory, so that no two have the same id
    for number in range(2000):
        table.resource(f"example.com/r{number}")
        kept.append(table.allocatable.base)
        rooms.add(id(table.allocatable.base))
    assert len(table.allocatable) == len(table.requested) == 2003
    assert len(rooms) <= 10


def test_what_nobody_asked_for_is_kept_up_with_nodes_that_change_and_go() -> None:
    table = NodeTable()
    table.put_node(made("n1", gpu="1"))
    table.put_node(made("n2", gpu="2"))
    table.put_node(made("n3", gpu="3"))
    table.put_node(made("n1", gpu="8"))
    table.put_node(made("n2"))
    table.remove_node("n3")
    number = table.resource("gpu")
    amounts = table.allocatable[number]
    assert [int(amounts[table.row_of[name]]) for name in ("n1", "n2")] == [8, 0]
    assert amounts.sum() == 8


def test_columns_survive_more_rows_and_rows_more_columns() -> None:
    table = NodeTable(capacity=2)
    numbers = []
    for count in range(20):
        table.put_node(made(f"n{count}", **{f"example.com/r{count}": str(count + 1)}))
        numbers.append(table.resource(f"example.com/r{count}"))
    found = [int(table.allocatable[number, table.row_of[f"n{count}"]]) for count, number in enumerate(numbers)]
    assert found == list(range(1, 21))


def test_a_copy_gives_a_new_resource_the_number_it_has_in_the_whole() -> None:
    table = NodeTable()
    table.put_node(made("n0"))
    row = table.put_node(made("n1", gpu="2", tpu="3"))
    copy = table.copy_rows([row])
    table.resource("tpu")
    number = copy.resource("gpu")
    assert number == table.resource("gpu")
    assert np.array_equal(copy.allocatable[:, 0], table.allocatable[:, row])


def test_pod_level_resources_in_a_status_count_where_the_rule_holds() -> None:
    table = NodeTable()
    row = table.put_node(made("n1", memory="8Gi"))
    raw = pod(nodeName="n1", resources={"requests": {"cpu": "1", "memory": "1Gi"}})
    resized = {**raw, "status": {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}}
    grown = {**raw, "status": {"resources": {"requests": {"cpu": "4"}}}}
    table.add_pod(row, Pod.from_raw(resized))
    cpu = table.resource("cpu")
    assert (table.requested[cpu, row], table.nonzero[0, row]) == (1000, 1000)
    before = table.versions.row_pods_at[row]
    table.set_resize_rules(ResizeRules(pod_level=True))
    assert (table.requested[cpu, row], table.nonzero[0, row]) == (3000, 3000)
    assert table.versions.row_pods_at[row] > before, "what is remembered of the node no longer holds"
    [copied] = table.copy_rows([row])
    table.replace_pod(row, Pod.from_raw(resized), Pod.from_raw(grown))
    assert (table.requested[cpu, row], table.nonzero[0, row]) == (4000, 4000)
    table.set_resize_rules(ResizeRules(pod_level=False))
    assert (table.requested[cpu, row], table.nonzero[0, row]) == (1000, 1000)
    table.remove_pod(row, Pod.from_raw(grown))
    assert (table.requested[cpu, row], table.nonzero[0, row], copied) == (0, 0, 0)


def test_resources_that_nobody_requests_any_more_lose_their_columns_and_get_them_back() -> None:
    table = NodeTable()
    table.most_resources = 8
    row = table.put_node(made("n1", **{f"example.com/r{number}": str(number) for number in range(20)}))
    stays = asking("stays", "example.com/r7")
    table.add_pod(row, stays)
    for number in range(20):
        come_and_gone = asking(f"p{number}", f"example.com/r{number}")
        table.add_pod(row, come_and_gone)
        table.remove_pod(row, come_and_gone)
        table.trim()
        assert table.columns[1] <= 9
    assert table.numbering > 0
    numbers = [table.resource(f"example.com/r{number}") for number in range(20)]
    assert table.allocatable[numbers, row].tolist() == list(range(20))
    assert table.requested[numbers, row].tolist() == [0] * 7 + [1] + [0] * 12
    table.remove_pod(row, stays)
    table.remove_node("n1")
    assert not table.allocatable.any()


def test_many_resources_in_use_are_not_looked_through_again_and_again() -> None:
    table = NodeTable()
    table.most_resources = 8
    row = table.put_node(made("n1"))
    for number in range(20):
        table.add_pod(row, asking(f"p{number}", f"example.com/r{number}"))
    table.trim()
    assert (table.columns[1], table.numbering) == (23, 0)
    for number in range(20, 40):
        table.resource(f"example.com/r{number}")
        table.trim()
    assert (table.columns[1], table.numbering) == (43, 0)
    for number in range(40, 44):
        table.resource(f"example.com/r{number}")
    table.trim()
    assert (table.columns[1], table.numbering) == (23, 1)


def test_label_keys_that_too_many_pods_asked_for_are_forgotten_but_those_always_needed() -> None:
    table = NodeTable()
    table.most_labels = 10
    row = table.put_node(made("n1"))
    for number in range(30):
        table.label(f"key-{number}")
        before = table.versions.at[LABELS]
        table.trim()
        assert table.columns[0] <= 10
        assert (table.versions.at[LABELS] > before) == (table.columns[0] == 2)
    assert table.label("kubernetes.io/hostname").values == ["n1"]
    assert table.label("kubernetes.io/hostname").ids[row] == 0


def test_ids_of_label_values_and_taint_sets_are_reused() -> None:
    table = NodeTable()
    column = table.label("serial")
    for number in range(100):
        raw = made("n1").raw
        metadata = {**raw["metadata"], "labels": {"serial": f"value-{number}"}}
        taints = [{"key": "serial", "value": str(number), "effect": "NoSchedule"}]
        row = table.put_node(Node.from_raw({**raw, "metadata": metadata, "spec": {"taints": taints}}))
        assert column.values[column.ids[row]] == f"value-{number}"
        assert [taint.value for taint in table.taint_sets[table.taints[row]]] == [str(number)]
    assert (len(column.values), len(table.taint_sets)) == (2, 3)


def asking(name: str, resource: str) -> Pod:
    raw = pod(name)
    raw["metadata"]["uid"] = name
    raw["spec"]["containers"][0]["resources"] = {"requests": {resource: "1"}, "limits": {resource: "1"}}
    return Pod.from_raw(raw)


def test_rows_that_follow_one_another_in_the_order_are_read_as_a_slice() -> None:
    table = NodeTable()
    for number in range(600):
        table.put_node(made(f"n{number}"))
    order = table.order
    assert table.places(order[20:420]) == slice(20, 420)
    few, picked, turned = order[20:40], order[20:420].copy(), order[420:20:-1]
    assert table.places(few) is few
    assert table.places(picked) is picked
    assert table.places(turned) is turned


def test_rows_around_one_that_is_gone_are_read_one_by_one() -> None:
    table = NodeTable()
    for number in range(600):
        table.put_node(made(f"n{number}"))
    before = table.order[:400]
    table.remove_node("n300")
    assert table.places(before) is before  # the order is no longer valid
    over, after = table.order[:400], table.order[300:590]
    assert table.places(over) is over
    assert table.places(after) == slice(301, 591)
    assert list(table.names[301:591]) == [table.names[row] for row in after.tolist()]


def of_uid(uid: str) -> Pod:
    return Pod.from_raw({"kind": "Pod", "metadata": {"name": uid, "uid": uid}, "spec": {}})


def test_pods_on_a_full_row_are_found_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kschedd.cache.table._LONG", 6)
    monkeypatch.setattr("kschedd.cache.table._JUST_COME", 2)
    chance = random.Random(1)
    table = NodeTable()
    rows = [table.put_node(made(name)) for name in ("a", "b")]
    lists: dict[int, list[str]] = {row: [] for row in rows}
    for number in range(3000):
        row = chance.choice(rows)
        uids = lists[row]
        if not uids or (len(uids) < 40 and chance.random() < 0.4):
            table.add_pod(row, of_uid(f"u{number}"))
            uids.append(f"u{number}")
        else:
            uid = chance.choice(uids)
            place = uids.index(uid)
            uids[place] = uids[-1]
            if chance.random() < 0.5:
                table.remove_pod(row, of_uid(uid))
                uids.pop()
            else:
                table.replace_pod(row, of_uid(uid), of_uid(uid))
                uids[-1] = uid
        if number == 1500:
            table = table.fork()
        assert [pod.uid for pod in table.pods[row]] == uids


def test_thousands_of_rows_that_lie_close_together_are_read_with_those_between_them() -> None:
    table = NodeTable()
    for number in range(6000):
        table.put_node(made(f"n{number}", cpu=str(number)))
    near = table.order[100:5000:3][::-1].copy()
    at, places = table.span(near)
    assert at == slice(100, 5000)
    assert places is not None
    assert table.allocatable[0, at][places].tolist() == table.allocatable[0, near].tolist()
    alone, few, far = table.order[100:5000], near[:200], table.order[::5].copy()
    assert table.span(alone) == (slice(100, 5000), None)
    assert all(table.span(rows)[0] is rows and table.span(rows)[1] is None for rows in (few, far))


def test_what_rows_have_of_cpu_and_memory_is_what_the_columns_say_whatever_was_asked_before() -> None:
    table = NodeTable()
    for number in range(10):
        table.put_node(made(f"n{number}", memory=f"{number}Gi"))
    rows, others = table.order[2:8], table.order[1:7]
    copy = table.copy_rows([5, 3])
    for requests in (rows, rows, others, rows):
        assert table.cpu_and_memory(requests).tolist() == table.allocatable[:2, requests].tolist()
    table.put_node(made("n3", cpu="7"))
    assert table.cpu_and_memory(rows).tolist() == table.allocatable[:2, rows].tolist()
    table.remove_node("n4")
    assert table.cpu_and_memory(rows).tolist() == table.allocatable[:2, rows].tolist()
    fork = table.fork()
    fork.put_node(made("n5", cpu="9"))
    table.put_node(made("n5", cpu="8"))
    for each in (fork, table):
        assert each.cpu_and_memory(rows).tolist() == each.allocatable[:2, rows].tolist()
    both = np.array([1, 0])
    assert copy.cpu_and_memory(both).tolist() == copy.allocatable[:2, both].tolist()
