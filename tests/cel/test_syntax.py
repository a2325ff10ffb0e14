"""The parser of CEL: chains of operators, and the limits of cel-go."""

import pytest

from kschedd.cel.syntax import MOST_CODE_POINTS, CallExpr, CelSyntaxError, Literal, located, parse


def test_a_chain_of_one_logical_operator_is_one_node() -> None:
    tree = parse("a || b || (c && d && e) || f")
    assert isinstance(tree, CallExpr)
    assert (tree.name, tree.at, len(tree.args)) == ("_||_", 2, 4)
    inner = tree.args[2]
    assert isinstance(inner, CallExpr)
    assert (inner.name, inner.at, len(inner.args)) == ("_&&_", 13, 3)


def test_a_chain_in_parentheses_at_the_left_belongs_to_the_chain_after_it() -> None:
    tree = parse("(a || b) || c")
    assert isinstance(tree, CallExpr)
    assert (tree.at, len(tree.args)) == (3, 3)


def test_operators_that_bind_equally_apply_from_the_left() -> None:
    tree = parse("7 - 2 - 1")
    assert isinstance(tree, CallExpr)
    left, right = tree.args
    assert isinstance(left, CallExpr)
    assert isinstance(right, Literal)
    assert (tree.name, tree.at, left.name, left.at, right.value) == ("_-_", 6, "_-_", 2, 1)
    mixed = parse("a && b || c && d")
    assert isinstance(mixed, CallExpr)
    assert [mixed.name, *(each.name for each in mixed.args if isinstance(each, CallExpr))] == ["_||_", "_&&_", "_&&_"]


def test_a_long_chain_keeps_only_its_operands() -> None:
    tree = parse(" || ".join(["true"] * 12_000))
    assert isinstance(tree, CallExpr)
    assert len(tree.args) == 12_000


def test_an_expression_has_at_most_100000_code_points() -> None:
    longest = "'" + "é" * (MOST_CODE_POINTS - 2) + "'"
    assert isinstance(parse(longest), Literal)
    with pytest.raises(CelSyntaxError) as refused:
        parse(f"{longest} ")
    assert str(refused.value) == (
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    )


def test_a_fault_shows_its_line_unless_it_has_more_than_16384_bytes() -> None:
    assert located("é" * 8_192, 1, "why") == f"ERROR: <input>:1:2: why\n | {'é' * 8_192}\n | .^"
    assert located("é" * 8_192 + "a", 1, "why") == "ERROR: <input>:1:2: why"


@pytest.mark.parametrize("escape", ["\\ud800", "\\udfff", "\\U0000D834"])
def test_half_of_a_surrogate_pair_is_no_code_point(escape: str) -> None:
    with pytest.raises(CelSyntaxError, match="ERROR: <input>:1:5: invalid unicode code point"):
        parse(f"a + '{escape}'")


def test_the_code_points_around_surrogates_are_valid() -> None:
    tree = parse(r"'\ud7ff\ue000'")
    assert isinstance(tree, Literal)
    assert tree.value == "\ud7ff\ue000"
