"""Tests that kschedd's CEL evaluator agrees with Google's C++ CEL on random expressions with a device's attributes.

The C++ library supports neither Kubernetes' types (quantities, versions) nor its cost limits, which test_cel tests.
Both must fail at run time for the same expressions; the messages may differ.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.cel.errors import CelCompileError, CelFailure
from tests.cel.devices import compile_selector, device
from tests.full_run import examples

cel = pytest.importorskip("cel_expr_python.cel", reason="the oracle needs cel-expr-python (in the dev group)")

ATTRIBUTES = {"d.example.com": {"model": "a100 größe", "index": 3, "big": 2**62, "ecc": True, "empty": ""}}
DEVICE = device("d.example.com", ATTRIBUTES, {})
ENV = cel.NewEnv(variables={"device": cel.Type.DYN})
BINDINGS = {"device": {"driver": "d.example.com", "attributes": ATTRIBUTES, "capacity": {}}}
A = 'device.attributes["d.example.com"]'

FAILURE = "failure at run time"


def ours(expression: str) -> Any:
    try:
        return compile_selector(expression).holds(DEVICE)
    except CelFailure:
        return FAILURE


def oracle(expression: str) -> Any:
    try:
        result = ENV.compile(expression).eval(data=BINDINGS)
    except (RuntimeError, ValueError) as fault:
        return fault
    return FAILURE if result.type() == cel.Type.ERROR else result.value()


INTS = st.one_of(
    st.integers(-10, 10).map(str),
    st.sampled_from([str(2**63 - 1), str(-(2**63)), f"{A}.index", f"{A}.big"]),
)
TEXTS = st.one_of(
    st.sampled_from(
        ["''", '"a100"', '"größe"', '"a"', "r'\\d'", '"\\u00df"', "device.driver", f"{A}.model", f"{A}.empty"]
    )
)
LISTS = st.lists(st.integers(-3, 5).map(str), max_size=4).map(lambda items: f"[{', '.join(items)}]")


def _ints(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%"]), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda i: f"-({i})"),
        TEXTS.map(lambda t: f"{t}.size()"),
        LISTS.map(lambda items: f"size({items})"),
        TEXTS.map(lambda t: f"int(size({t}) > 2 ? '7' : '-7')"),
        st.tuples(LISTS, st.integers(-1, 4)).map(lambda t: f"{t[0]}[{t[1]}]"),
    )


WHOLE = st.recursive(INTS, _ints, max_leaves=4)
ATOMS = st.one_of(
    st.sampled_from(["true", "false", f"{A}.ecc", f"has({A}.model)", f"has({A}.colour)", f'"index" in {A}']),
    st.tuples(WHOLE, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), WHOLE).map(" ".join),
    st.tuples(TEXTS, st.sampled_from(["==", "!=", "<", ">="]), TEXTS).map(" ".join),
    st.tuples(TEXTS, st.sampled_from(["contains", "startsWith", "endsWith", "matches"]), TEXTS).map(
        lambda t: f"{t[0]}.{t[1]}({t[2]})"
    ),
    st.tuples(WHOLE, LISTS).map(lambda t: f"{t[0]} in {t[1]}"),
    st.tuples(LISTS, st.sampled_from(["all", "exists", "exists_one"]), st.integers(-1, 3)).map(
        lambda t: f"{t[0]}.{t[1]}(x, 6 / x > {t[2]})"
    ),
    st.tuples(LISTS, st.integers(0, 3), LISTS).map(lambda t: f"{t[0]}.filter(x, x > {t[1]}).map(x, x * 2) == {t[2]}"),
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||", "==", "!="]), inner).map(lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        inner.map(lambda e: f"!({e})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]}) ? ({t[1]}) : ({t[2]})"),
    ),
    max_leaves=5,
)


@settings(max_examples=examples(400))
@given(EXPRESSIONS)
def test_says_what_the_oracle_says(expression: str) -> None:
    expected = oracle(expression)
    if isinstance(expected, Exception):
        with pytest.raises(CelCompileError):
            compile_selector(expression)
        return
    assert ours(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("1 / 0 == 1 || true", id="an-error-beside-true-is-true"),
        pytest.param("1 / 0 == 1 && false", id="an-error-beside-false-is-false"),
        pytest.param(f"{2**63 - 1} + 1 > 0", id="overflow-is-an-error"),
        pytest.param("-(-9223372036854775808) > 0", id="negated-least-integer-is-an-error"),
        pytest.param("-7 / 2 == -3 && -7 % 2 == -1", id="division-truncates"),
        pytest.param(f"{A}.colour == 'red'", id="a-missing-attribute-is-an-error"),
        pytest.param("[1, 2][2] == 1", id="an-index-beyond-the-end-is-an-error"),
        pytest.param("'größe'.size() == 5", id="texts-are-counted-in-code-points"),
        pytest.param("[1, 0].exists(x, 1 / x == 1)", id="exists-absorbs-errors"),
        pytest.param("[0, 1].all(x, 1 / x == 2)", id="all-absorbs-errors"),
        pytest.param(f"{A}.index == 3.0", id="numbers-compare-across-types"),
        pytest.param(f"{A}.index == '3'", id="other-types-differ"),
    ],
)
def test_corner(expression: str) -> None:
    assert ours(expression) == oracle(expression)
