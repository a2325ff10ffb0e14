"""The order of --sort-by."""

import pytest

from kschedd.printing.columns.ordering import natural, sort_by


@pytest.mark.parametrize(
    "ordered",
    [
        pytest.param([9, 10, 100], id="numbers"),
        pytest.param(["500m", "1", "1500m", "10"], id="quantities-by-amount"),
        pytest.param(["128Mi", "1Gi", "2G", "2Gi"], id="quantities-of-several-notations"),
        pytest.param([2, "2500m", 3], id="quantities-written-as-numbers"),
        pytest.param(["web-2", "web-10", "web-10a", "web-100"], id="names-in-natural-order"),
        pytest.param(["a", "a1", "a2b", "a10b", "b"], id="digits-within-names"),
        pytest.param(["a1", "a01", "a2", "a" + "8" * 5000, "a" + "9" * 5000], id="many-digits"),
        pytest.param(["a-1", "a1", "ab"], id="as-text-where-no-digits-meet"),
        pytest.param(["2025-01-01T00:00:00Z", "2025-01-01T00:00:00.5Z", "2025-01-01T00:00:01Z"], id="times"),
        pytest.param(["2025-01-01T03:00:00+02:00", "2025-01-01T02:00:00Z"], id="times-of-several-zones"),
        pytest.param([None, None, "a", "b"], id="what-is-not-there-comes-first"),
        pytest.param([False, True], id="truth"),
        pytest.param(["1", "10", "n1"], id="one-that-is-no-quantity-makes-all-of-them-text"),
    ],
)
def test_order(ordered) -> None:
    for given in (list(reversed(ordered)), ordered[1:] + ordered[:1], list(ordered)):
        assert sort_by(given, lambda value: value)
        assert given == ordered


def test_equal_ones_stay_in_their_order() -> None:
    given = [("b", "1"), ("a", "1000m"), ("c", "1")]
    assert sort_by(given, lambda pair: pair[1])
    assert [name for name, _ in given] == ["b", "a", "c"]


def test_a_field_that_nothing_has_sorts_nothing() -> None:
    assert not sort_by([{"a": 1}, {"b": 2}], lambda raw: raw.get("c"))
    assert sort_by([], lambda raw: None)


def test_leading_zeros_decide_last() -> None:
    assert natural("a1") < natural("a01") < natural("a2")
