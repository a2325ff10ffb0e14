"""Tests of the keys of affinity terms in the index of terms."""

from typing import Any

import pytest

from kschedd.api.selecting.terms import parse_pod_affinity_term
from kschedd.cache.term_index import TermKey, keys_matching, term_key

WEB = {"matchLabels": {"app": "web"}}


def expression(operator: str, *values: str) -> dict[str, Any]:
    return {"key": "tier", "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("term", "key"),
    [
        pytest.param({"labelSelector": WEB}, ("d", "app", "web"), id="one-namespace-and-value"),
        pytest.param({"labelSelector": {}}, ("d", "", ""), id="any-labels"),
        pytest.param({"labelSelector": WEB, "namespaces": ["a"]}, ("a", "app", "web"), id="another-namespace"),
        pytest.param({"labelSelector": WEB, "namespaces": ["a", "b"]}, (None, "app", "web"), id="two-namespaces"),
        pytest.param(
            {"labelSelector": WEB, "namespaces": ["a"], "namespaceSelector": WEB},
            (None, "app", "web"),
            id="namespaces-with-labels-as-well",
        ),
        pytest.param(
            {"labelSelector": {"matchExpressions": [expression("NotIn", "web")]}}, ("d", "", ""), id="not-one-value"
        ),
        pytest.param(
            {"labelSelector": {"matchExpressions": [expression("In", "web", "db")]}}, ("d", "", ""), id="two-values"
        ),
    ],
)
def test_a_term_has_the_key_of_its_namespace_and_of_a_label_that_it_requires(term: Any, key: TermKey) -> None:
    assert term_key(parse_pod_affinity_term({"topologyKey": "zone", **term}, "d")) == key


def test_a_pod_is_looked_up_with_and_without_its_namespace_and_each_of_its_labels() -> None:
    assert list(keys_matching("d", {"app": "web", "tier": "db"})) == [
        ("d", "", ""),
        (None, "", ""),
        ("d", "app", "web"),
        (None, "app", "web"),
        ("d", "tier", "db"),
        (None, "tier", "db"),
    ]
