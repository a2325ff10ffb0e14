"""Tests of the functions for device selectors: the result of each, and the arguments that it rejects.

Expected values are from the CEL language definition, from cel-go's string extension, and from Kubernetes' libraries for
lists, regular expressions, quantities and versions.
"""

from typing import Any

import pytest

from kschedd.cel.environment import CelEnvironment
from kschedd.cel.errors import CelCompileError, CelFailure
from kschedd.cel.program import compile_expression
from tests.cel.devices import compile_selector, device

DEVICE = device("gpu.example.com", {}, {})


def outcome(expression: str) -> Any:
    return compile_selector(expression).holds(DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        # operators
        pytest.param("7.0 / 2.0 == 3.5", id="doubles-divide-exactly"),
        pytest.param("string(1.0 / 0.0) == '+Inf'", id="a-double-by-zero-is-infinite"),
        pytest.param("string(-1.0 / 0.0) == '-Inf' && string(1.0 / -0.0) == '-Inf'", id="infinity-has-a-sign"),
        pytest.param("string(0.0 / 0.0) == 'NaN'", id="zero-by-zero-is-no-number"),
        pytest.param("7u / 2u == 3u && 7u % 4u == 3u", id="unsigned-division-truncates"),
        pytest.param("-1 < 1u && 1u < 1.5", id="numbers-of-other-types-have-an-order"),
        pytest.param("b'ab' + b'c' == b'abc' && b'a' < b'b'", id="bytes-are-joined-and-ordered"),
        pytest.param("[1] + [2] == [1, 2]", id="lists-are-joined"),
        pytest.param("false < true", id="false-comes-before-true"),
        # conversions
        pytest.param("int(1.9) == 1 && int(-1.9) == -1", id="int-cuts-towards-zero"),
        pytest.param("int('-12') == -12 && int('+5') == 5 && int(3u) == 3", id="int-of-text-and-unsigned"),
        pytest.param("uint(3) == 3u && uint(3.9) == 3u && uint('7') == 7u", id="uint-of-others"),
        pytest.param("double(2) == 2.0 && double(2u) == 2.0 && double('2.5') == 2.5", id="double-of-others"),
        pytest.param("string(-3) == '-3' && string(3u) == '3' && string(true) == 'true'", id="string-of-others"),
        pytest.param("string(100.0) == '100' && string(0.5) == '0.5' && string(-0.0) == '-0'", id="plain-doubles"),
        pytest.param("string(123456.5) == '123456.5'", id="six-places-before-the-point-stand-plain"),
        pytest.param("string(1000000.0) == '1e+06'", id="seven-places-get-an-exponent"),
        pytest.param("string(-123456789.0) == '-1.23456789e+08'", id="an-exponent-keeps-every-digit"),
        pytest.param("string(0.0001) == '0.0001' && string(0.00001) == '1e-05'", id="small-doubles"),
        pytest.param("bytes('é').size() == 2 && string(b'abc') == 'abc'", id="bytes-and-text"),
        pytest.param("bool('t') && bool('TRUE') && !bool('0') && !bool('False')", id="bool-of-text"),
        pytest.param("type(1) == int && type('a') == string && type(1u) == uint", id="types-are-values"),
        # texts
        pytest.param("'tacocat'.charAt(3) == 'o' && 'größe'.charAt(2) == 'ö'", id="char-at"),
        pytest.param("'tacocat'.charAt(7) == ''", id="char-at-the-end-is-empty"),
        pytest.param("'hello mellow'.indexOf('ello') == 1", id="index-of"),
        pytest.param("'hello mellow'.indexOf('ello', 2) == 7", id="index-of-from-an-offset"),
        pytest.param("'hello mellow'.indexOf('jello') == -1", id="index-of-what-is-not-there"),
        pytest.param(
            "'a'.indexOf('') == 0 && 'a'.indexOf('', 7) == 1 && 'abc'.indexOf('a', 3) == -1",
            id="an-empty-text-is-where-one-looks",
        ),
        pytest.param("'hello mellow'.lastIndexOf('ello') == 7", id="last-index-of"),
        pytest.param("'hello mellow'.lastIndexOf('') == 12", id="an-empty-text-is-last-at-the-end"),
        pytest.param("'hello mellow'.lastIndexOf('ello', 6) == 1", id="last-index-of-starts-at-most-there"),
        pytest.param("'ab'.lastIndexOf('abc') == -1", id="a-longer-text-is-nowhere"),
        pytest.param("'hello hello'.replace('he', 'we') == 'wello wello'", id="replace-all"),
        pytest.param("'hello hello'.replace('he', 'we', 1) == 'wello hello'", id="replace-the-first"),
        pytest.param("'hello hello'.replace('he', 'we', 0) == 'hello hello'", id="replace-none"),
        pytest.param("'ab'.replace('', '-') == '-a-b-'", id="replace-the-empty-text-goes-between"),
        pytest.param("'a b c'.split(' ') == ['a', 'b', 'c']", id="split"),
        pytest.param("'a b c'.split(' ', 0) == []", id="split-into-none"),
        pytest.param("'a b c'.split(' ', 1) == ['a b c']", id="split-into-one"),
        pytest.param("'a b c'.split(' ', 2) == ['a', 'b c']", id="split-into-two"),
        pytest.param("'a b'.split(' ', -1) == ['a', 'b']", id="split-without-a-limit"),
        pytest.param("'abc'.split('') == ['a', 'b', 'c']", id="split-into-letters"),
        pytest.param("'abc'.split('', 2) == ['a', 'bc']", id="split-into-letters-up-to-a-limit"),
        pytest.param("'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(7) == ''", id="substring-to-the-end"),
        pytest.param("'tacocat'.substring(0, 4) == 'taco'", id="substring"),
        pytest.param("'  \\ttrim\\n '.trim() == 'trim' && '\\u2003x\\u3000'.trim() == 'x'", id="trim"),
        pytest.param("'\\u001fx'.trim() == '\\u001fx'", id="separators-of-ascii-are-no-white-space"),
        pytest.param("'TacoCÆt'.lowerAscii() == 'tacocÆt'", id="lower-ascii-leaves-other-letters"),
        pytest.param("'tacocæt'.upperAscii() == 'TACOCæT'", id="upper-ascii-leaves-other-letters"),
        pytest.param("['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && [].join('-') == ''", id="join"),
        pytest.param("matches('abc', '^a.c$') && !matches('abc', '^b')", id="matches-as-a-function"),
        pytest.param("'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]') == ''", id="find-the-first-match"),
        pytest.param("'1 2 3'.findAll('[0-9]') == ['1', '2', '3']", id="find-all-matches"),
        pytest.param("'1 2 3'.findAll('[0-9]', 2) == ['1', '2'] && '1'.findAll('1', 0) == []", id="find-so-many"),
        pytest.param("'abc'.findAll('b*') == ['', 'b', '']", id="no-empty-match-right-after-another"),
        # lists
        pytest.param("[1, 2, 3].sum() == 6 && [1.5, 2.5].sum() == 4.0 && [].sum() == 0", id="sum"),
        pytest.param("[1u, 2u].sum() == 3u", id="sum-of-unsigned"),
        pytest.param("['b', 'a'].min() == 'a' && [1, 3, 2].max() == 3", id="least-and-most"),
        pytest.param("[1, 1, 2].isSorted() && ![2, 1].isSorted() && [].isSorted()", id="sorted"),
        pytest.param("[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2", id="place-in-a-list"),
        pytest.param("['a'].indexOf('b') == -1 && ['a'].lastIndexOf('b') == -1", id="not-in-a-list"),
        pytest.param("dyn([1.0]).indexOf(1) == 0 && dyn([true]).indexOf(1) == -1", id="place-by-cels-own-equality"),
        # quantities
        pytest.param("quantity('1Gi').add(quantity('1Gi')).compareTo(quantity('2Gi')) == 0", id="quantities-add-up"),
        pytest.param("quantity('50k').sub(quantity('20k')) == quantity('30k')", id="quantities-are-subtracted"),
        pytest.param("quantity('1').add(1).asInteger() == 2", id="an-integer-is-added-to-a-quantity"),
        pytest.param("quantity('1').sub(1).sign() == 0 && quantity('-1').sign() == -1", id="sign-of-a-quantity"),
        pytest.param("quantity('2M').sign() == 1", id="a-positive-quantity"),
        pytest.param("!quantity('1500m').isInteger() && quantity('2000m').isInteger()", id="integer-quantities"),
        pytest.param("quantity('50.5').asApproximateFloat() == 50.5", id="quantity-as-double"),
        pytest.param("quantity('1k').isLessThan(quantity('1Ki'))", id="decimal-before-binary"),
        pytest.param("isQuantity('1.3Gi') && !isQuantity('1.3GB') && !isQuantity('')", id="is-quantity"),
        # versions
        pytest.param("semver('1.2.3').major() == 1 && semver('1.2.3').patch() == 3", id="parts-of-a-version"),
        pytest.param("semver('1.2.3-rc.1').compareTo(semver('1.2.3')) == -1", id="pre-release-comes-before"),
        pytest.param("semver('1.0.0+a').compareTo(semver('1.0.0+b')) == 0", id="the-build-has-no-rank"),
        pytest.param("isSemver('1.0.0') && !isSemver('v1.0.0') && !isSemver('1.0')", id="is-semver"),
        pytest.param("!isSemver('01.0.0') && !isSemver('1.0.0-01')", id="leading-zeros-make-no-version"),
        pytest.param("semver('v1.02', true) == semver('1.2.0')", id="a-version-is-normalized-on-demand"),
        pytest.param("semver('v01', true) == semver('1.0.0') && !isSemver('x', true)", id="normalized-from-one-number"),
        pytest.param("semver('v1.0-rc.1', true) == semver('1.0.0-rc.1')", id="normalizing-leaves-the-pre-release"),
        # optional values
        pytest.param("optional.of(1).hasValue() && !optional.none().hasValue()", id="has-value"),
        pytest.param("optional.none().or(optional.of(2)).value() == 2", id="the-other-where-there-is-none"),
        pytest.param("optional.of(1).or(optional.of(2)).value() == 1", id="the-first-where-there-is-one"),
        pytest.param("optional.of(1).orValue(3) == 1 && optional.none().orValue(3) == 3", id="or-value"),
        pytest.param("!optional.ofNonZeroValue(0).hasValue()", id="zero-is-no-value"),
        pytest.param("!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue('a').hasValue()", id="empty"),
    ],
)
def test_holds(expression: str) -> None:
    assert outcome(expression) is True


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        pytest.param("7 % 0 == 0", "modulus by zero", id="modulus-by-zero"),
        pytest.param("1u - 2u == 0u", "unsigned integer overflow", id="unsigned-below-zero"),
        pytest.param("-9223372036854775808 / -1 > 0", "integer overflow", id="least-integer-by-minus-one"),
        pytest.param("int(1e30) > 0", "integer overflow", id="int-of-a-large-double"),
        pytest.param("uint(-1) == 1u", "unsigned integer overflow", id="uint-of-a-negative"),
        pytest.param("uint(-1.0) == 1u", "unsigned integer overflow", id="uint-of-a-negative-double"),
        pytest.param(
            "int('1_0') == 10", "type conversion error from 'string' to 'int'", id="underscores-make-no-number"
        ),
        pytest.param("double('x') > 0.0", "type conversion error from 'string' to 'double'", id="double-of-a-word"),
        pytest.param("bool('yes')", "type conversion error from 'string' to 'bool'", id="yes-is-no-truth-value"),
        pytest.param("string(b'\\xff') == ''", "invalid UTF-8 in bytes, cannot convert to string", id="no-utf-8"),
        pytest.param("'abc'.charAt(4) == ''", "index out of range: 4", id="char-beyond-the-end"),
        pytest.param("'abc'.charAt(-1) == ''", "index out of range: -1", id="char-before-the-start"),
        pytest.param("'abc'.indexOf('a', -1) == -1", "index out of range: -1", id="index-of-from-before-the-start"),
        pytest.param("'abc'.lastIndexOf('a', -1) == 0", "index out of range: -1", id="last-index-of-from-before"),
        pytest.param("'tacocat'.substring(40) == ''", "index out of range: 40", id="substring-beyond-the-end"),
        pytest.param("'tacocat'.substring(0, 40) == ''", "index out of range: 40", id="substring-to-beyond-the-end"),
        pytest.param("'ab'.substring(40, 2) == ''", "invalid substring range. start: 40, end: 2", id="ends-first"),
        pytest.param("[dyn(1)].join() == ''", "no such overload: join(list)", id="join-of-a-number"),
        pytest.param("'a'.find('(') == ''", "error parsing regexp: missing closing )", id="find-with-a-bad-pattern"),
        pytest.param("[].min() == 1", "min called on empty list", id="least-of-none"),
        pytest.param("[].max() == 1", "max called on empty list", id="most-of-none"),
        pytest.param("[dyn(1), dyn('a')].max() == 1", "no such overload: max(list)", id="most-of-mixed-types"),
        pytest.param("dyn(['a']).sum() == 1", "no such overload", id="sum-of-texts"),
        pytest.param("[9223372036854775807, 1].sum() > 0", "integer overflow", id="sum-beyond-64-bits"),
        pytest.param("quantity('1500m').asInteger() == 1", "cannot convert value to integer", id="half-an-integer"),
        pytest.param("semver('').major() == 1", "Version string empty", id="no-version"),
        pytest.param("semver('1.0.0-01').major() == 1", "Numeric PreRelease version must not", id="leading-zero"),
        pytest.param("optional.none().value() == 1", "optional.none() dereference", id="value-of-none"),
    ],
)
def test_fails(expression: str, why: str) -> None:
    with pytest.raises((CelFailure, CelCompileError)) as failure:  # literals are converted during compilation
        outcome(expression)
    assert str(failure.value).removeprefix("compilation failed: ").startswith(why)


OBJECT = {
    "replicas": 3,
    "names": ["a", "bb", "ccc"],
    "labels": {"app": "web", "tier": "db"},
    "containers": [{"image": "nginx:1.2"}, {"image": "redis"}],
}


@pytest.mark.parametrize(
    ("expression", "cost"),  # costs in Kubernetes 1.37.2
    [
        pytest.param("object.replicas == 3", 3, id="a-field"),
        pytest.param("has(object.names)", 1, id="has-is-free"),
        pytest.param("object.names.all(n, n.size() > 0)", 21, id="all"),
        pytest.param("object.names.filter(n, n.size() > 1)", 38, id="filter"),
        pytest.param("object.names.map(n, n + 'x')", 45, id="map"),
        pytest.param("object.names.exists_one(n, n == 'bb')", 12, id="exists-one"),
        pytest.param("object.containers.all(c, has(c.image) && c.image.startsWith('nginx'))", 17, id="a-prefix"),
        pytest.param("'hello'.matches('^h.*o$')", 2, id="a-pattern"),
        pytest.param("object.names.isSorted()", 2, id="sorted"),
        pytest.param("[3, 1, 2].sort()", 29, id="sorting-is-quadratic"),
        pytest.param("object.replicas in [1, 2, 3]", 2, id="a-constant-list-is-free"),
        pytest.param("'a,b,c'.split(',').join('-')", 2, id="split-and-join"),
        pytest.param("quantity('100m').isLessThan(quantity('1'))", 3, id="quantities"),
        pytest.param("object.labels.map(k, object.labels[k])", 33, id="an-index-by-variable"),
    ],
)
def test_costs(expression: str, cost: int) -> None:
    program = compile_expression(expression, CelEnvironment.of({"object": "dyn"}))
    assert program.run({"object": OBJECT})[1] == cost
