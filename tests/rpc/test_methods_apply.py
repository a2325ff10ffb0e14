from typing import Any

import pytest

from kschedd.rpc.methods_apply import Terms, apply_all, apply_atomically, parse, try_all
from kschedd.store.store import Store
from tests.store.definitions import definition, widget

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4}}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: a, image: a}]}\n"
BAD = """\
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec:
  containers:
  - name: a
    image: a
    resources: {requests: {cpu: 1.5.0}}
"""


def names(store: Store) -> list[str]:
    return [obj.key for kind in ("Node", "Pod") for obj in store.list(kind)]


@pytest.fixture
def store() -> Store:
    return Store(now=lambda: 0.0)


def test_one_bad_manifest_does_not_spoil_the_others_and_has_its_line(store: Store) -> None:
    parsed = parse("---\n".join((NODE, BAD, POD)), "cluster.yaml")
    outcome = apply_all(parsed.wanted, store)
    assert [(result["kind"], result["name"], result["action"]) for result in outcome.results] == [
        ("Node", "n1", "created"),
        ("Pod", "web", "created"),
    ]
    [error] = outcome.errors
    assert {field: error[field] for field in ("source", "line", "path", "value", "kind", "name", "code")} == {
        "source": "cluster.yaml",
        "line": 13,
        "path": "spec.containers[0].resources.requests.cpu",
        "value": "1.5.0",
        "kind": "Pod",
        "name": "bad",
        "code": "invalid",
    }
    assert error["message"].startswith(
        'cluster.yaml:13: spec.containers[0].resources.requests.cpu: Invalid value: "1.5.0"'
    )


def test_applying_again_says_what_changed(store: Store) -> None:
    def actions(text: str) -> list[str]:
        return [result["action"] for result in apply_all(parse(text, "-").wanted, store).results]

    assert actions(NODE) == ["created"]
    assert actions(NODE) == ["unchanged"]
    assert actions(NODE.replace("cpu: 4", "cpu: 8")) == ["configured"]


def test_all_or_nothing(store: Store) -> None:
    wanted = parse("---\n".join((NODE, BAD)), "-").wanted
    outcome = apply_atomically(wanted, store)
    assert outcome.results == []
    assert len(outcome.errors) == 1
    assert names(store) == []
    assert len(apply_atomically(wanted[:1], store).results) == 1
    assert names(store) == ["n1"]


def test_a_dry_run_knows_what_depends_on_what_and_changes_nothing(store: Store) -> None:
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
    text = "---\n".join((space, POD.replace("{name: web}", "{name: web, namespace: team}")))
    version = store.version
    outcome = try_all(parse(text, "-").wanted, store)
    assert [result["action"] for result in outcome.results] == ["created", "created"]
    assert outcome.errors == []
    assert store.version == version
    assert names(store) == []


def test_a_refusal_that_has_no_field_stands_at_the_line_of_its_document(store: Store) -> None:
    text = NODE + "---\n" + POD.replace("{name: web}", "{name: web, namespace: nowhere}")
    [error] = apply_all(parse(text, "f.yaml").wanted, store).errors
    assert (error["line"], error["code"]) == (6, "not_found")
    assert error["message"] == 'f.yaml:6: namespaces "nowhere" not found'


def test_what_nothing_acts_on_is_named_object_by_object(store: Store) -> None:
    widgets = [definition(), widget("a"), widget("b")]
    outcome = apply_all(parse(widgets, "-").wanted, store)
    assert [result["name"] for result in outcome.results] == ["widgets.example.com", "a", "b"]
    why = "kept and listed, but nothing acts on it"
    assert [(each["name"], each["why"]) for each in outcome.unsupported] == [("a", why), ("b", why)]


def test_a_custom_resource_before_its_definition_is_no_match(store: Store) -> None:
    outcome = apply_all(parse([widget("early"), definition(), widget("late")], "f").wanted, store)
    assert [result["name"] for result in outcome.results] == ["widgets.example.com", "late"]
    [error] = outcome.errors
    assert (error["code"], error["name"]) == ("no_match", "early")
    assert error["why"] == 'no matches for kind "Widget" in version "example.com/v1"'


MISSPELT = POD.replace("spec: {", "spec: {\n  contaners: [],\n  ")


def test_an_unknown_field_is_refused_with_its_line_and_the_field_that_was_meant(store: Store) -> None:
    [error] = apply_all(parse(MISSPELT, "f.yaml").wanted, store).errors
    assert (error["path"], error["code"]) == ("spec.contaners", "invalid")
    said = 'strict decoding error: unknown field "spec.contaners"; did you mean "containers"?'
    assert error["why"] == said
    assert error["line"] == 5


def test_unknown_fields_are_left_out_with_a_warning_or_without(store: Store) -> None:
    for validation, warned in (("Warn", 1), ("Ignore", 0)):
        outcome = apply_all(parse(MISSPELT, "f.yaml").wanted, store, Terms(validation))  # type: ignore[arg-type]
        assert not outcome.errors
        assert len(outcome.warnings) == warned
    assert "contaners" not in store.get("Pod", "default", "web").spec


@pytest.mark.parametrize(
    ("manifests", "message"),
    [
        pytest.param({"kind": "Pod"}, "-: apiVersion: Required value", id="no-api-version"),
        pytest.param({"apiVersion": "v1", "kind": 3}, "-: kind: Invalid value: 3: must be text", id="kind-is-a-number"),
        pytest.param([{"apiVersion": "v1"}], "-[0]: kind: Required value", id="its-place-in-the-array"),
        pytest.param(
            {"apiVersion": "v1", "kind": "List", "items": [3]}, "-.items[0]: 3: an object is a map", id="no-object"
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "List", "items": "x"},
            "-: items: Invalid value: must be a list of objects",
            id="items-are-text",
        ),
        pytest.param("]", "", id="no-yaml"),
        pytest.param("just words", "", id="no-object-in-the-text"),
    ],
)
def test_what_is_no_manifest_is_an_error_not_a_bug(manifests: Any, message: str) -> None:
    parsed = parse(manifests, "-")
    assert parsed.wanted == ()
    assert parsed.errors
    assert message in parsed.errors[0]["message"]


def test_lists_are_unfolded() -> None:
    item = {"metadata": {"name": "n1"}}
    listed = {"apiVersion": "v1", "kind": "NodeList", "items": [item]}
    [wanted] = parse([listed], "-").wanted
    assert wanted.raw == {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    assert len(parse({"apiVersion": "v1", "kind": "List", "items": [listed, wanted.raw]}, "-").wanted) == 2


def test_a_line_of_a_megabyte_is_read() -> None:
    long = NODE.replace("{name: n1}", "{name: n1, annotations: {note: " + "x" * 1_000_000 + "}}")
    outcome = apply_all(parse(long + "---\n" + BAD, "-").wanted, store := Store(now=lambda: 0.0))
    assert len(outcome.errors) + len(outcome.results) == 2
    assert all(len(error["message"]) < 10_000 for error in outcome.errors)
    assert store.count("Pod") == 0
