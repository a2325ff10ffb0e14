"""Tests that amounts by node, and their sums and minima by domain, equal plain sums after each change."""

from random import Random

import numpy as np
import pytest

from kschedd.api.nodes import Node
from kschedd.cache import domain_counter
from kschedd.cache.domain_counter import DomainCounter, RowSet
from kschedd.cache.table import NodeTable

ZONE, RACK = "zone", "rack"


def node(name: str, **labels: str) -> Node:
    return Node.from_raw({"kind": "Node", "metadata": {"name": name, "labels": labels}})


class Plain:
    """A table, a counter, and the added amounts by node."""

    def __init__(self, *zones: str) -> None:
        self.table = NodeTable(capacity=2)
        self.labels: dict[str, dict[str, str]] = {}
        self.amounts: dict[str, int] = {}
        for number, zone in enumerate(zones):
            self.put(f"n{number}", **({ZONE: zone} if zone else {}))
        self.counter = DomainCounter(self.table)

    def put(self, name: str, **labels: str) -> None:
        self.table.put_node(node(name, **labels))
        self.labels[name] = labels
        self.amounts.setdefault(name, 0)

    def add(self, name: str, amount: int) -> None:
        self.counter.add(self.table.row_of[name], amount)
        self.amounts[name] += amount

    def sums(self, key: str, among: set[str] | None = None) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, labels in self.labels.items():
            if key in labels and (among is None or name in among):
                found[labels[key]] = found.get(labels[key], 0) + self.amounts[name]
        return found

    def row_set(self, number: int, among: set[str]) -> RowSet:
        mask = np.zeros(self.table.capacity, dtype=np.bool_)
        mask[[self.table.row_of[name] for name in among]] = True
        return RowSet(number, mask)

    def check(self, key: str, among: set[str] | None = None, rows: RowSet | None = None) -> None:
        domains, expected = self.counter.by_domain(key, rows), self.sums(key, among)
        numbers = self.table.label(key).numbers
        assert {value: int(domains.counts[numbers[value]]) for value in expected} == expected
        assert domains.counts[-1] == 0, "rows without the key are in no domain"
        assert domains.total == sum(expected.values())
        assert domains.least(np.array([numbers[value] for value in expected])) == min(expected.values())
        by_row = self.counter.rows()
        assert {name: int(by_row[self.table.row_of[name]]) for name in self.amounts} == self.amounts


@pytest.mark.parametrize(
    ("amounts", "least"),
    [
        pytest.param([("n0", 1)], 0, id="another-has-less"),
        pytest.param([("n0", 1), ("n1", 1)], 0, id="one-of-three-left"),
        pytest.param([("n0", 1), ("n1", 1), ("n2", 1)], 1, id="the-last-with-the-minimum-grew"),
        pytest.param([("n0", 2), ("n1", 2), ("n2", 2), ("n1", -1)], 1, id="one-falls-below"),
        pytest.param([("n0", 2), ("n1", 2), ("n2", 2), ("n1", -1), ("n2", -1)], 1, id="a-second-falls-to-it"),
        pytest.param(
            [("n0", 2), ("n1", 2), ("n2", 2), ("n1", -1), ("n2", -1), ("n1", 1)], 1, id="one-of-two-leaves-it"
        ),
        pytest.param(
            [("n0", 2), ("n1", 2), ("n2", 2), ("n1", -1), ("n2", -1), ("n1", 1), ("n2", 1)], 2, id="both-leave-it"
        ),
        pytest.param([("n0", 3), ("n1", 1), ("n2", 2), ("n1", 1)], 2, id="it-grows-to-another-one's"),
        pytest.param([("n0", 3), ("n1", 1), ("n2", 2), ("n1", 5)], 2, id="it-grows-beyond-another-one's"),
        pytest.param([("n0", -3), ("n0", 4)], 0, id="from-below-zero"),
    ],
)
def test_the_minimum_follows_each_change(amounts: list[tuple[str, int]], least: int) -> None:
    plain = Plain("a", "b", "c")
    plain.check(ZONE)
    for name, amount in amounts:
        plain.add(name, amount)
        plain.check(ZONE)
    assert plain.counter.by_domain(ZONE).least(None) == least
    assert not plain.counter.dropped


def test_the_minimum_of_all_values_leaves_out_rows_without_the_key() -> None:
    plain = Plain("a", "b", "")
    for name, amount in (("n0", 3), ("n1", 2), ("n2", 1)):
        plain.add(name, amount)
    assert plain.counter.by_domain(ZONE).least(None) == 2


def test_the_minimum_is_searched_again_only_when_the_last_domain_that_has_it_grows() -> None:
    plain = Plain("a", "b", "c")
    searched = []
    for name, amount in (("n0", 1), ("n1", 1), ("n2", 2), ("n0", -1), ("n1", -1), ("n0", 1), ("n2", 1), ("n1", 1)):
        plain.check(ZONE)
        plain.add(name, amount)
        searched.append(plain.counter.by_domain(ZONE)._least is None)
    #           sums: 1 0 0  1 1 0  1 1 2  0 1 2  0 0 2  1 0 2  1 0 3  1 1 3
    assert searched == [False, False, True, False, False, False, False, True]


def test_sums_are_kept_until_a_label_changes() -> None:
    plain = Plain("a", "b")
    kept = plain.counter.by_domain(ZONE)
    plain.add("n0", 1)
    assert plain.counter.by_domain(ZONE) is kept
    plain.put("n1", zone="c")
    plain.add("n1", 1)
    assert plain.counter.by_domain(ZONE) is not kept
    plain.check(ZONE)


@pytest.mark.parametrize("limit", [2, 64], ids=["few-kept", "all-kept"])
@pytest.mark.parametrize("seed", range(8))
def test_sums_follow_amounts_nodes_and_labels(seed: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_counter, "_DOMAINS_LIMIT", limit)
    random, plain = Random(seed), Plain("a", "b", "c", "", "a", "b")
    for step in range(120):
        name = random.choice(list(plain.labels))
        if random.random() < 0.1:
            plain.put(random.choice((name, f"m{step}")), zone=random.choice("abcd"), rack=random.choice("xy"))
        else:
            plain.add(name, random.choice((-2, -1, -1, 1, 1, 1, 3)))
        assert len(plain.counter._domains) <= limit
        if random.random() < 0.8:  # otherwise several changes are made before the next check
            some = {each for each in plain.labels if ZONE in plain.labels[each]}
            plain.check(ZONE)
            plain.check(ZONE, some - {"n0"}, plain.row_set(step + 1, some - {"n0"}))
            if any(RACK in labels for labels in plain.labels.values()):
                plain.check(RACK)


@pytest.mark.parametrize("many", [1, 40], ids=["sparse", "dense"])
def test_sums_of_a_large_table_are_the_same_from_rows_and_from_a_column(many: int) -> None:
    plain = Plain(*("abc"[number % 3] for number in range(100)))
    for number in range(many):
        plain.add(f"n{number * 2}", number + 1)
    plain.check(ZONE)
    among = {f"n{number}" for number in range(0, 100, 5)}
    plain.check(ZONE, among, plain.row_set(1, among))


def test_sums_among_some_rows_stay_apart_from_those_among_others() -> None:
    plain = Plain("a", "a", "b", "b")
    first, second = {"n0", "n2"}, {"n1", "n2", "n3"}
    sets = plain.row_set(1, first), plain.row_set(2, second)
    for _ in range(2):
        for number, name in enumerate(plain.labels):
            plain.add(name, number + 1)
        plain.check(ZONE, first, sets[0])
        plain.check(ZONE, second, sets[1])
        plain.check(ZONE)


def test_a_row_whose_amount_is_zero_again_takes_no_room() -> None:
    plain = Plain("a", "b")
    plain.add("n0", 2)
    plain.add("n0", -2)
    plain.add("n1", 1)
    assert plain.counter.by_row == {plain.table.row_of["n1"]: 1}
    plain.check(ZONE)


def test_a_node_beyond_the_column_so_far_counts() -> None:
    plain = Plain("a", "b")
    plain.check(ZONE)
    assert plain.table.capacity == 2
    plain.put("n2", zone="c")
    plain.add("n2", 3)
    plain.check(ZONE)
