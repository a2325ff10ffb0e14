"""Errors of rules in definitions: costs and missing old values, with kube-apiserver 1.37.2's figures and messages."""

from collections.abc import Mapping
from typing import Any

import pytest

from kschedd.store.custom_resources.kinds import definition_faults
from tests.store.definitions import definition

PATH = "spec.versions[1].schema.openAPIV3Schema"
ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
LIMIT = 10_000_000  # of one rule
COST = "Forbidden: estimated rule cost exceeds budget by factor of"
CONTRIBUTED = "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
TOTAL = "Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget"
STRING = {"type": "string"}


def listed(item: Mapping[str, Any], most: int | None = None) -> dict[str, Any]:
    return {"type": "array", "items": item, **({} if most is None else {"maxItems": most})}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def fields(*, limited: bool) -> dict[str, Any]:
    """Return a schema with fields of each kind; without limits, or with small ones."""
    text = {**STRING, **({"maxLength": 100} if limited else {})}
    most = 20 if limited else None
    entries = {"type": "object", "additionalProperties": text, **({"maxProperties": 20} if limited else {})}
    octets = {**STRING, "format": "byte", **({"maxLength": 100} if limited else {})}
    return an_object(
        s=text,
        t=text,
        l=listed(text, most),
        k=listed(text, most),
        n=listed({"type": "integer"}, most),
        m=entries,
        o=listed({**an_object(name=text, tags=listed(text, most)), "required": ["name"]}, most),
        i={"x-kubernetes-int-or-string": True},
        d=listed({**STRING, "format": "date-time"}, most),
        e={**STRING, "enum": ["Always", "No"]},
        y=listed(octets, most),
    )


def faults(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the errors of a definition with this schema: the path in the schema, and the message without advice."""
    raw = definition()
    raw["spec"]["versions"][1]["schema"] = {"openAPIV3Schema": schema}
    found = [(fault.path.removeprefix(PATH), fault.why) for fault in definition_faults(raw)]
    return [(path.removeprefix("."), why.removesuffix(ADVICE).strip()) for path, why in found]


def ruled(schema: Mapping[str, Any], *rules: str, **more: str) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [{"rule": rule, **more} for rule in rules]}


COSTS = [
    ("self.s == self.t", 314_577, 44),
    ("self.s + self.t == 'a'", 629_151, 85),
    ("self.s.size() < 10 && self.n.size() < 3", 8, 8),
    ("self.l.all(x, x.startsWith('abc'))", 5_242_878, 103),
    ("self.l.all(x, self.k.exists(y, x == y))", 345_882_608_640_773_328, 18_523),
    ("self.n.all(x, self.n.exists_one(y, x == y))", 9_895_603_077_120, 1_743),
    ("self.s.matches('^[a-z]+$')", 629_148, 84),
    ("self.l.all(x, x.matches('^[a-z]+$'))", 659_710_961_253, 1_723),
    ("self.s.contains(self.t)", 98_956_172_333, 1_604),
    ("self.m.all(k, self.m[k] == 'x')", 3_145_723, 163),
    ("self.m.all(k, v, k == v)", 1_966_078, 103),
    ("self.m.transformMap(k, v, v + 'a').all(x, x == 'a')", 123_697_967_949, 1_014),
    ("self.l.map(x, x + 'a').exists(y, y == 'b')", 329_872_257_839, 1_194),
    ("self.l.filter(x, x != 'a').size() > 2", 15_728_640, 315),
    ("self.l.isSorted() && self.n.sum() > 3", 329_856_004_918, 845),
    ("self.l.indexOf('a') > 1 && self.s.indexOf('a') > 1", 329_854_746_629, 866),
    ("'a' in self.l", 1_048_577, 22),
    ("['a', 'b'].exists(y, y == self.s)", 25, 25),
    ("self.s.lowerAscii().trim() == 'a'", 629_149, 83),
    ("self.s.replace('', self.t).matches('x')", 989_560_465_003, 16_165),
    ("self.s.replace('ab', self.t).matches('x')", 494_780_232_504, 8_085),
    ("self.s.split(',').all(x, x == 'a')", 13_212_053, 1_683),
    ("self.s.split(',', 5).all(x, x == 'a')", 629_169, 103),
    ("self.l.join(',').matches('a')", 659_706_137_808, 1_606),
    ("self.s.findAll('[0-9]+').all(x, int(x) > 1)", 19_503_505, 2_485),
    ("self.l.all(x, isQuantity(x) && quantity(x).isLessThan(quantity('1')))", 659_714_106_978, 1_743),
    (
        "self.l.all(x, isCIDR(x) && cidr(x).containsIP('10.0.0.1') && cidr(x).containsCIDR('10.0.0.0/8'))",
        989_580_073_353,
        2_783,
    ),
    ("ip(self.s) == ip(self.t) && cidr(self.s).ip().family() == 4", 943_729, 130),
    ("url(self.s) == url(self.t)", 943_723, 124),
    ("!format.dns1123Label().validate(self.s).hasValue()", 10_066_341, 1_285),
    ("sets.contains(self.l, self.k) || sets.equivalent(self.l, self.k)", 3_298_528_591_885, 1_210),
    ("self.l.distinct().sort() == self.l", 18_446_744_073_709_551_615, 336_828),
    ("self.o.sortBy(x, x.name).size() > 1", 122_965_427_947, 1_158),
    ("self.l.slice(1, 3).size() == 2 && self.l.reverse() == self.l", 1_153_465, 54),
    ("self.?s.orValue('').startsWith(self.t)", 314_578, 45),
    ("self.?s.optMap(x, x == 'a').orValue(true)", 20, 20),
    ("self.l[?0].hasValue() && self.l[0] == 'abc'", 8, 8),
    ("(has(self.s) ? self.s : self.e).matches('aaaa')", 314_576, 44),
    ("self.e == 'Always'", 3, 3),
    ("self.o.all(x, x.tags.all(t, t.startsWith(x.name)))", 239_456_429_379_654_083, 368_123),
    ("self.d.all(x, x > timestamp('2020-01-01T00:00:00Z'))", 857_925, 123),
    ("self.y.all(x, string(x) == 'abc' && bytes(string(x)) == x)", 1_319_420_873_928, 943),
    ("type(self.i) == string && self.i.matches('aaaa')", 314_579, 314_579),
    ("dyn(self.l).all(x, x == 'a')", 4_194_304, 84),
    ("self.s.format([]) == strings.quote(self.t)", 1_258_306, 175),
    ("{'a': self.s}.all(k, k == 'a') && [self.s].all(x, x == self.t)", 56, 56),
]
"""Rules with their costs without and with limits."""


@pytest.mark.parametrize(("rule", "free", "limited"), COSTS)
def test_the_cost_of_an_evaluation(rule: str, free: int, limited: int) -> None:
    for cost, schema in ((free, fields(limited=False)), (limited, fields(limited=True))):
        most = LIMIT // cost
        if most:
            assert not faults(an_object(w=listed(ruled(schema, rule), most)))
        path, why = faults(an_object(w=listed(ruled(schema, rule), most + 1)))[0]
        assert path == "properties[w].items.x-kubernetes-validations[0].rule"
        assert why.startswith(COST)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(ruled(an_object(l=listed(STRING)), "self.l.all(x, x.startsWith('a'))"), [], id="cheap"),
        pytest.param(
            an_object(l=listed(ruled({**STRING, "maxLength": 30}, "self.matches('aaaa')"))),
            [("properties[l].items.x-kubernetes-validations[0].rule", f"{COST} 1.468006x")],
            id="each-item-of-a-list-without-limit",
        ),
        pytest.param(
            ruled(an_object(s=STRING), "self.kind.matches('aaaaaaaaaaaaa') && self.metadata.name.matches('a')"),
            [],
            id="names-are-short",
        ),
        pytest.param(
            ruled(an_object(l=listed(STRING)), "self.l.exists(x, x.matches('a'))"),
            [
                ("x-kubernetes-validations[0].rule", f"{COST} more than 100x"),
                ("x-kubernetes-validations[0].rule", CONTRIBUTED),
                ("", f"{TOTAL} by factor of more than 100x"),
            ],
            id="both-limits",
        ),
        pytest.param(
            ruled(an_object(l=listed(STRING)), *["self.l.all(x, x == 'abcdefghijklmnopqrstuvwxyz')"] * 20),
            [
                *[(f"x-kubernetes-validations[{index}].rule", CONTRIBUTED) for index in range(4)],
                ("", f"{TOTAL} by factor of 1.468006x"),
            ],
            id="total",
        ),
        pytest.param(
            ruled(an_object(l=listed(STRING)), "self.l.size() < 3", messageExpression="self.l.map(x, x + x).join('')"),
            [
                (
                    "x-kubernetes-validations[0].messageExpression",
                    "Forbidden: estimated messageExpression cost exceeds budget by factor of more than 100x",
                ),
                ("x-kubernetes-validations[0].messageExpression", CONTRIBUTED),
                ("", f"{TOTAL} by factor of more than 100x"),
            ],
            id="message",
        ),
    ],
)
def test_limits(schema: Mapping[str, Any], expected: list[tuple[str, str]]) -> None:
    assert faults(schema) == expected


def test_an_unchanged_schema_is_not_estimated_again() -> None:
    raw, expensive = definition(), ruled(an_object(l=listed(STRING)), "self.l.exists(x, x.matches('a'))")
    raw["spec"]["versions"][1]["schema"] = {"openAPIV3Schema": expensive}
    assert definition_faults(raw)
    assert not definition_faults({**raw, "metadata": {**raw["metadata"], "labels": {"a": "b"}}}, raw)


WITHIN = "oldSelf cannot be used on the uncorrelatable portion of the schema within"


@pytest.mark.parametrize(
    ("of_list", "rule", "reported"),
    [
        pytest.param({}, "self.a == oldSelf.a", True, id="list"),
        pytest.param({"x-kubernetes-list-type": "atomic"}, "self.a == oldSelf.a", True, id="atomic"),
        pytest.param(
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
            "self.a == oldSelf.a",
            False,
            id="keys",
        ),
        pytest.param({}, "self.a != 'oldSelf'", False, id="text"),
        pytest.param({}, "self.oldSelf == 1", False, id="field"),
    ],
)
def test_transition_rules_need_an_old_value(of_list: Mapping[str, Any], rule: str, reported: bool) -> None:
    item = {**an_object(a={**STRING, "maxLength": 9}, oldSelf={"type": "integer"}), "required": ["a"]}
    found = faults(an_object(l={**listed(ruled(item, rule), 9), **of_list}))
    if not reported:
        assert not found
    else:
        ((path, why),) = found
        assert path == "properties[l].items.x-kubernetes-validations[0].rule"
        assert why == f'Invalid value: "{rule}": {WITHIN} {PATH}.properties[l]'
