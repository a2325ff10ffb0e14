"""Tests of JSONPath with kubectl's documented examples and with edge cases."""

import pytest

from kschedd.printing.templates.jsonpath import JsonPathError, compile_template, evaluate

# The sample of the kubectl documentation.
SAMPLE = {
    "kind": "List",
    "items": [
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.1", "labels": {"kubernetes.io/hostname": "127.0.0.1"}},
            "status": {
                "capacity": {"cpu": "4"},
                "addresses": [{"type": "LegacyHostIP", "address": "127.0.0.1"}],
            },
        },
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.2"},
            "status": {
                "capacity": {"cpu": "8"},
                "addresses": [
                    {"type": "LegacyHostIP", "address": "127.0.0.2"},
                    {"type": "another", "address": "127.0.0.3"},
                ],
            },
        },
    ],
    "users": [
        {"name": "myself", "user": {}},
        {"name": "e2e", "user": {"username": "admin", "password": "secret"}, "age": 7},
    ],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param("kind is {.kind}", "kind is List", id="text-around-a-field"),
        pytest.param("{.kind}", "List", id="field"),
        pytest.param(".kind", "List", id="without-braces"),
        pytest.param("{['kind']}", "List", id="field-in-brackets"),
        pytest.param("{..name}", "127.0.0.1 127.0.0.2 myself e2e", id="recursive-descent"),
        pytest.param("{.items[*].metadata.name}", "127.0.0.1 127.0.0.2", id="every-element"),
        pytest.param("{.items[*]['metadata.name', 'kind']}", "None None", id="union-takes-what-is-there"),
        pytest.param("{.users[*]['name', 'age']}", "myself e2e 7", id="union"),
        pytest.param("{.users[0].name}", "myself", id="index"),
        pytest.param("{.users[-1].name}", "e2e", id="index-from-the-end"),
        pytest.param("{.users[0:1].name}", "myself", id="slice"),
        pytest.param("{.users[-1:].name}", "e2e", id="slice-from-the-end"),
        pytest.param("{.users[7].name}", "", id="index-past-the-end-gives-nothing"),
        pytest.param('{.users[?(@.name=="e2e")].user.password}', "secret", id="filter"),
        pytest.param("{.users[?(@.age)].name}", "e2e", id="filter-by-presence"),
        pytest.param("{.users[?(@.age>6)].name}", "e2e", id="filter-by-number"),
        pytest.param("{.users[?(@.age<=6)].name}", "", id="filter-by-number-in-vain"),
        pytest.param(
            "{.items[?(@.status.addresses[1].type!='x')].metadata.name}", "127.0.0.2", id="filter-by-a-deep-path"
        ),
        pytest.param(
            "{range .items[*]}[{.metadata.name}, {.status.capacity.cpu}] {end}",
            "[127.0.0.1, 4] [127.0.0.2, 8] ",
            id="range",
        ),
        pytest.param('{range .items[*]}{.metadata.name}{"\\t"}{end}', "127.0.0.1\t127.0.0.2\t", id="quoted-tab"),
        pytest.param(
            "{range .items[*]}{range .status.addresses[*]}{.address};{end}{end}",
            "127.0.0.1;127.0.0.2;127.0.0.3;",
            id="range-within-range",
        ),
        pytest.param("{.items[0].metadata.labels.kubernetes\\.io/hostname}", "127.0.0.1", id="escaped-dot"),
        pytest.param("{.users[0].user}", "{}", id="a-map-is-json"),
        pytest.param("{$.kind}", "List", id="root"),
        pytest.param("{.items[*].metadata['name']}", "127.0.0.1 127.0.0.2", id="brackets-after-a-field"),
        pytest.param("{.nothing.at.all}", "", id="what-is-not-there-gives-nothing"),
    ],
)
def test_templates(template: str, text: str) -> None:
    assert evaluate(compile_template(template), SAMPLE) == text


@pytest.mark.parametrize(
    ("template", "why"),
    [
        pytest.param("{.a", '"}" is missing', id="open-brace"),
        pytest.param("{.a[}", "a number, a slice", id="open-bracket"),
        pytest.param("{range .a}{.b}", "needs an {end}", id="range-without-end"),
        pytest.param("{end}", "without a {range}", id="end-without-range"),
        pytest.param("{.a[?(@.b==)]}", "a path such as", id="filter-without-value"),
        pytest.param("{'a}", "closing ' is missing", id="open-quote"),
        pytest.param("{.a[" + "9" * 5_000 + "]}", "at most 18 characters", id="an-index-of-5000-digits"),
        pytest.param("{.a[1:2:0]}", "positive step", id="step-of-zero"),
        pytest.param("{=}", "a path such as", id="no-path"),
    ],
)
def test_faults_are_told_with_their_place(template: str, why: str) -> None:
    with pytest.raises(JsonPathError, match="at character"):
        compile_template(template)
    with pytest.raises(JsonPathError) as caught:
        compile_template(template)
    assert why in str(caught.value)
