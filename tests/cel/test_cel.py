"""Tests of CEL expressions on devices: their values, their errors, and the limit of their cost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.cel.errors import LONGEST_EXPRESSION, CelCompileError, CelFailure
from kschedd.cel.syntax import Uint
from kschedd.cel.values import Quantity, Semver
from tests.cel.devices import compile_selector, device

DEVICE = device(
    "gpu.example.com",
    {
        "gpu.example.com": {
            "model": "a100",
            "index": 1,
            "ecc": True,
            "driverVersion": Semver.parse("1.10.0-rc.1+b"),
        },
        "other.example.com": {"rack": "r7"},
    },
    {"gpu.example.com": {"memory": Quantity.parse("40Gi")}},
)
GPU = 'device.attributes["gpu.example.com"]'
MEMORY = 'device.capacity["gpu.example.com"].memory'


def outcome(expression: str) -> Any:
    return compile_selector(expression).holds(DEVICE)


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        pytest.param('device.driver == "gpu.example.com"', True, id="driver"),
        pytest.param('device.driver != "gpu.example.com"', False, id="driver-differs"),
        pytest.param(f'{GPU}.model in ["a100", "h100"] && {GPU}.index >= 1', True, id="in-list-and-compare"),
        pytest.param(f"{GPU}.ecc", True, id="boolean-attribute"),
        pytest.param(f"!{GPU}.ecc", False, id="not"),
        pytest.param(f"{GPU}.index < 1 || {GPU}.index > 0", True, id="or"),
        pytest.param(f'{MEMORY}.compareTo(quantity("40Gi")) >= 0', True, id="quantity-equal"),
        pytest.param(f'{MEMORY}.compareTo(quantity("41000Mi")) < 0', True, id="quantity-less-across-suffixes"),
        pytest.param(f'{MEMORY}.isGreaterThan(quantity("42949672959"))', True, id="quantity-exact-to-the-byte"),
        pytest.param(f'{GPU}.driverVersion.isLessThan(semver("1.10.0"))', True, id="prerelease-before-release"),
        pytest.param(f'{GPU}.driverVersion.isGreaterThan(semver("1.9.9"))', True, id="version-by-number-not-text"),
        pytest.param(f"{GPU}.driverVersion.minor() == 10", True, id="version-part"),
        pytest.param('device.attributes["other.example.com"].rack == "r7"', True, id="other-domain"),
        pytest.param('"no.example.com" in device.attributes', False, id="domain-not-there"),
        pytest.param('device.attributes["no.example.com"].size() == 0', True, id="missing-domain-is-empty"),
        pytest.param(f"has({GPU}.model) && !has({GPU}.colour)", True, id="has"),
        pytest.param(f'{GPU}.?colour.orValue("none") == "none"', True, id="optional-missing"),
        pytest.param(f'{GPU}[?"model"].orValue("none") == "a100"', True, id="optional-there"),
        pytest.param(f"cel.bind(gpu, {GPU}, gpu.ecc && gpu.index == 1)", True, id="bind"),
        pytest.param(f'{GPU}.exists(name, name == "ecc")', True, id="exists-over-map-keys"),
        pytest.param("[1, 2, 3].map(x, x * 2).filter(x, x > 2) == [4, 6]", True, id="map-and-filter"),
        pytest.param("[1, 2, 3].exists_one(x, x > 2)", True, id="exactly-one"),
        pytest.param(r'device.driver.matches("^gpu\\.[a-z]+\\.com$")', True, id="matches"),
        pytest.param("device.driver.matches(r'^gpu\\.')", True, id="raw-string"),
        pytest.param('device.driver.startsWith("gpu") ? true : false', True, id="conditional"),
        pytest.param('device.driver.split(".").size() == 3', True, id="split"),
        pytest.param("-7 / 2 == -3 && -7 % 2 == -1", True, id="division-truncates"),
        pytest.param("dyn(1) == 1.0 && dyn(1) == 1u", True, id="numbers-compare-across-types"),
        pytest.param("dyn(1) == true", False, id="true-is-not-one"),
        pytest.param("1 in [dyn(true)]", False, id="true-is-not-one-in-a-list"),
        pytest.param(f'{GPU}.model in ["h100", "t4"]', False, id="in-no-text-of-a-list"),
        pytest.param('dyn(1) in ["1", "2"]', False, id="a-number-is-no-text-in-a-list"),
        pytest.param('dyn(b"1") in ["1", "2"]', False, id="bytes-are-no-text-in-a-list"),
        pytest.param('"1" in [dyn("1"), dyn(1)] && 1 in [dyn("1"), dyn(1)]', True, id="in-a-list-of-several-types"),
        pytest.param('"\\x41\\u0042\\103\\n" == "ABC\\n"', True, id="escapes"),
        pytest.param('size(b"\\377é") == 3', True, id="bytes-are-octets"),
        pytest.param("0x10 == 16 && 1e3 == 1000.0 && .5 < 1.0", True, id="number-forms"),
        pytest.param("true // and a comment", True, id="comment"),
        pytest.param(f"{GPU}.nothing || true", True, id="or-absorbs-an-error-before"),
        pytest.param(f"true || {GPU}.nothing", True, id="or-decides-before-an-error"),
        pytest.param(f"{GPU}.nothing && false", False, id="and-absorbs-an-error"),
        pytest.param(f"[1, 2].all(x, {GPU}.nothing == x || x > 1) || true", True, id="error-within-all"),
    ],
)
def test_expression_means(expression: str, answer: bool) -> None:
    assert outcome(expression) is answer


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        pytest.param(f"{GPU}.colour", "no such key: colour", id="missing-attribute"),
        pytest.param(
            'device.attributes["no.example.com"].colour',
            "no such key: colour",
            id="missing-attribute-of-missing-domain",
        ),
        pytest.param(f"{GPU}.model > 1", "no such overload", id="types-that-do-not-compare"),
        pytest.param(f"{GPU}.model", "CEL result of type string could not be converted to bool", id="not-a-bool"),
        pytest.param(f"{GPU}.model && true", "no such overload", id="logic-on-a-string"),
        pytest.param("[1][1] == 1", "index out of bounds: 1", id="index"),
        pytest.param("1 / 0 == 1", "division by zero", id="division-by-zero"),
        pytest.param("9223372036854775807 + 1 > 0", "integer overflow", id="overflow"),
        pytest.param('quantity("much").isInteger()', "quantities must match the regular expression", id="quantity"),
        pytest.param('semver("1.0").major() == 1', "No Major.Minor.Patch elements found", id="semver"),
        pytest.param('"a".matches("(" + device.driver)', "error parsing regexp", id="pattern"),
        pytest.param("dyn(1).exists(x, true)", "got 'types.Int', expected iterable type", id="iterating-a-number"),
    ],
)
def test_run_fails_with_upstreams_words(expression: str, why: str) -> None:
    with pytest.raises(CelFailure) as failure:
        outcome(expression)
    assert str(failure.value).startswith(why)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        pytest.param("?!", "ERROR: <input>:1:1: Syntax error", id="syntax"),
        pytest.param(
            "device.driver ==", "ERROR: <input>:1:17: Syntax error: mismatched input '<EOF>'", id="unfinished"
        ),
        pytest.param(
            "true\n&& #", "ERROR: <input>:2:4: Syntax error: token recognition error at: '#'", id="second-line"
        ),
        pytest.param('"open', "token recognition error", id="open-string"),
        pytest.param('"\\q" == ""', "invalid escape sequence", id="escape"),
        pytest.param("foo == 1", "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')", id="name"),
        pytest.param("frob(1)", "ERROR: <input>:1:5: undeclared reference to 'frob' (in container '')", id="function"),
        pytest.param("device.nope", "ERROR: <input>:1:7: undefined field 'nope'", id="field"),
        pytest.param(
            "device.driver == 1", "found no matching overload for '_==_' applied to '(string, int)'", id="types"
        ),
        pytest.param(
            "device.driver.contains(1)",
            "found no matching overload for 'contains' applied to 'string.(int)'",
            id="method-types",
        ),
        pytest.param("1", "must evaluate to bool or the unknown type, not int", id="not-a-condition"),
        pytest.param("[1].all(x, x)", "expected type 'bool' but found 'int'", id="predicate-is-no-condition"),
        pytest.param("has(device)", "invalid argument to has() macro", id="has"),
        pytest.param("while == 1", "reserved identifier: while", id="reserved-word"),
        pytest.param("99999999999999999999 > 0", "invalid int literal", id="too-large-a-number"),
        pytest.param("(" * 5_000, "expression recursion limit exceeded", id="nesting"),
        pytest.param("1" + " + 1" * 2_000 + " > 0", "expression recursion limit exceeded", id="long-sum"),
        pytest.param("true" + " " * LONGEST_EXPRESSION, "expression is too long", id="length"),
    ],
)
def test_compile_error_has_upstreams_words(expression: str, why: str) -> None:
    with pytest.raises(CelCompileError) as error:
        compile_selector(expression)
    assert why in str(error.value)


def test_compile_error_shows_the_place() -> None:
    with pytest.raises(CelCompileError) as error:
        compile_selector("device.driver == 1")
    assert str(error.value).splitlines()[1:] == [" | device.driver == 1", " | ..............^"]


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(
            "".join(f"[0,1,2,3,4,5,6,7,8,9].all(v{n}, " for n in range(9)) + "true" + ")" * 9, id="nested-loops"
        ),
        pytest.param(
            'cel.bind(a, "0123456789", '
            + "".join(
                f"cel.bind({new}, {old}+{old}+{old}+{old}+{old}+{old}+{old}+{old}+{old}+{old}, "
                for old, new in zip("abcdefgh", "bcdefghi", strict=True)
            )
            + 'i != ""'
            + ")" * 9,
            id="growing-text",
        ),
        pytest.param(
            "[1].map(a, [a, a]).map(b, [b, b]).map(c, [c, c]).size() == 2 || "
            + "".join(f"[1,2,3,4,5,6,7,8,9,0].map(v{n}, " for n in range(9))
            + "1"
            + ")" * 9
            + ".size() == 1",
            id="growing-lists",
        ),
    ],
)
def test_runaway_expression_is_stopped(expression: str) -> None:
    with pytest.raises(CelFailure, match="operation cancelled: actual cost limit exceeded"):
        outcome(expression)


def test_an_exceeded_cost_is_absorbed_by_nothing() -> None:
    endless = "".join(f"[0,1,2,3,4,5,6,7,8,9].all(v{n}, " for n in range(9)) + "true" + ")" * 9
    with pytest.raises(CelFailure, match="cost limit"):
        outcome(f"{endless} || true")


def test_long_chain_of_alternatives_is_fine() -> None:
    assert outcome(" || ".join(f'{GPU}.model == "m{n}"' for n in range(180)) + f' || {GPU}.model == "a100"')


@given(st.text(alphabet="device.at[]\"'()+-*/<>=!&|?:,0123 \n{}", max_size=40))
def test_any_text_is_a_program_or_a_clean_error(text: str) -> None:
    try:
        program = compile_selector(text)
    except CelCompileError:
        return
    try:
        assert program.holds(DEVICE) in (True, False)
    except CelFailure:
        pass


_SMALL = st.integers(-20, 20)


@given(_SMALL, _SMALL, _SMALL, st.sampled_from(["+", "-", "*"]), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_arithmetic_is_integer_arithmetic(a: int, b: int, c: int, operator: str, comparison: str) -> None:
    assert outcome(f"({a}) {operator} ({b}) {comparison} ({c})") is eval(f"({a}) {operator} ({b}) {comparison} ({c})")


_VERSIONS = st.builds(
    lambda core, pre: Semver(core, pre),
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
    st.lists(st.sampled_from(["0", "2", "10", "alpha", "beta", "x-1"]), max_size=3).map(tuple),
)


@given(_VERSIONS, _VERSIONS)
def test_versions_are_ordered_as_semver_says(left: Semver, right: Semver) -> None:
    def plain(one: Semver, other: Semver) -> int:
        if one.core != other.core:
            return -1 if one.core < other.core else 1
        if not one.pre or not other.pre:
            return bool(other.pre) - bool(one.pre)
        for mine, its in zip(one.pre, other.pre, strict=False):
            if mine == its:
                continue
            if mine.isdigit() and its.isdigit():
                return -1 if int(mine) < int(its) else 1
            if mine.isdigit() != its.isdigit():
                return -1 if mine.isdigit() else 1
            return -1 if mine < its else 1
        return (len(one.pre) > len(other.pre)) - (len(one.pre) < len(other.pre))

    assert (left.precedence > right.precedence) - (left.precedence < right.precedence) == plain(left, right)


def test_unsigned_is_a_type_of_its_own() -> None:
    assert Uint(1) == 1
    with pytest.raises(CelCompileError, match=r"\(uint, int\)"):
        compile_selector("1u + 1 == 2")
