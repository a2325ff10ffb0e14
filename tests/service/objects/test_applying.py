from collections.abc import Sequence
from typing import Any

import attrs
import pytest
import yaml

from kschedd.api.text import documents
from kschedd.service.objects.applying import FROM_FILES, Applier, ApplyOutcome, Wanted, chunks, parse
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


def apply_all(wanted: Sequence[Wanted], store: Store, **how: Any) -> ApplyOutcome:
    return Applier(attrs.evolve(FROM_FILES, **how)).each(wanted, store)


def names(store: Store) -> list[str]:
    return [obj.key for kind in ("Node", "Pod") for obj in store.list(kind)]


@pytest.fixture
def store() -> Store:
    return Store(now=lambda: 0.0)


def test_one_bad_manifest_does_not_spoil_the_others_and_has_its_line(store: Store) -> None:
    parsed = parse("---\n".join((NODE, BAD, POD)), "cluster.yaml")
    outcome = apply_all(parsed.wanted, store)
    assert [(result.object.kind, result.object.name, result.action) for result in outcome.results] == [
        ("Node", "n1", "created"),
        ("Pod", "web", "created"),
    ]
    [error] = outcome.tell().errors
    assert {field: getattr(error, field) for field in ("source", "line", "path", "value", "kind", "name", "code")} == {
        "source": "cluster.yaml",
        "line": 13,
        "path": "spec.containers[0].resources.requests.cpu",
        "value": "1.5.0",
        "kind": "Pod",
        "name": "bad",
        "code": "invalid",
    }
    assert error.message.startswith(
        'cluster.yaml:13: spec.containers[0].resources.requests.cpu: Invalid value: "1.5.0"'
    )


def test_a_text_is_read_for_its_lines_only_where_one_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def composing(text: str, loader: Any) -> Any:
        read.append(text)
        return compose(text, loader)

    compose = yaml.compose
    monkeypatch.setattr(documents.yaml, "compose", composing)
    parsed = parse("---\n".join((NODE, BAD, POD)), "cluster.yaml")
    outcome = apply_all(parsed.wanted, store)
    assert read == []
    assert [error.line for error in outcome.tell().errors] == [13]
    assert [text.strip() for text in read] == [BAD.strip()]


def test_applying_again_says_what_changed(store: Store) -> None:
    def actions(text: str) -> list[str]:
        return [result.action for result in apply_all(parse(text, "-").wanted, store).results]

    assert actions(NODE) == ["created"]
    assert actions(NODE) == ["unchanged"]
    assert actions(NODE.replace("cpu: 4", "cpu: 8")) == ["configured"]


def test_a_server_side_apply_is_its_manager_s(store: Store) -> None:
    def applied(text: str, manager: str, **how: Any) -> Any:
        return apply_all(parse(text, "a.yaml").wanted, store, manager=manager, server_side=True, **how)

    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: v}\n"
    assert [result.action for result in applied(config, "one").results] == ["created"]
    assert [result.action for result in applied(config, "one").results] == ["unchanged"]
    other = config.replace("k: v", "k: w")
    [error] = applied(other, "two").tell().errors
    assert (error.code, error.line, error.why) == (
        "conflict",
        1,
        'Apply failed with 1 conflict: conflict with "one": .data.k',
    )
    assert [result.action for result in applied(other, "two", force=True).results] == ["configured"]
    [unnamed] = applied(config.replace("name: c", "generateName: c-"), "one").tell().errors
    assert unnamed.path == "metadata.name"
    [nobody] = applied(config, "").tell().errors
    assert nobody.path == "fieldManager"


def test_what_is_tried_on_a_fork_knows_what_depends_on_what_and_changes_nothing(store: Store) -> None:
    space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
    text = "---\n".join((space, POD.replace("{name: web}", "{name: web, namespace: team}")))
    version = store.version
    outcome = apply_all(parse(text, "-").wanted, store.fork())
    assert [result.action for result in outcome.results] == ["created", "created"]
    assert outcome.tell().errors == []
    assert store.version == version
    assert names(store) == []


def test_objects_are_applied_in_portions_by_their_weight() -> None:
    wanted = parse([{"apiVersion": "v1", "kind": "Pod", "spec": {"x": [0] * n}} for n in (1, 2, 500, 3)], "-").wanted
    assert [[len(one.raw["spec"]["x"]) for one in portion] for portion in chunks(wanted, 100)] == [[1, 2], [500], [3]]


def test_small_objects_weigh_what_each_object_costs() -> None:
    wanted = parse([{"apiVersion": "v1", "kind": "Namespace"}] * 100, "-").wanted
    assert max(map(len, chunks(wanted, 1_000))) == 1_000 // (4 + 20)


def test_faults_of_an_array_are_told_up_to_a_limit() -> None:
    parsed = parse([{}] * 5_000, "-")
    assert len(parsed.errors) == 1_001
    assert parsed.errors[-1].why == "too many errors (1000); the rest was not read"


def test_a_refusal_that_has_no_field_stands_at_the_line_of_its_document(store: Store) -> None:
    text = NODE + "---\n" + POD.replace("{name: web}", "{name: web, namespace: nowhere}")
    [error] = apply_all(parse(text, "f.yaml").wanted, store).tell().errors
    assert (error.line, error.code) == (6, "not_found")
    assert error.message == 'f.yaml:6: namespaces "nowhere" not found'


def test_what_nothing_acts_on_is_named_object_by_object(store: Store) -> None:
    widgets = [definition(), widget("a"), widget("b")]
    outcome = apply_all(parse(widgets, "-").wanted, store)
    assert [result.object.name for result in outcome.results] == ["widgets.example.com", "a", "b"]
    why = "stored, but no controller acts on it"
    assert [(each.name, each.why) for each in outcome.unsupported] == [("a", why), ("b", why)]


def test_a_custom_resource_before_its_definition_is_no_match(store: Store) -> None:
    outcome = apply_all(parse([widget("early"), definition(), widget("late")], "f").wanted, store)
    assert [result.object.name for result in outcome.results] == ["widgets.example.com", "late"]
    [error] = outcome.tell().errors
    assert (error.code, error.name) == ("no_match", "early")
    assert error.why == 'no matches for kind "Widget" in version "example.com/v1"'


MISSPELT = POD.replace("spec: {", "spec: {\n  contaners: [],\n  ")


def test_an_unknown_field_is_refused_with_its_line_and_the_field_that_was_meant(store: Store) -> None:
    [error] = apply_all(parse(MISSPELT, "f.yaml").wanted, store).tell().errors
    assert (error.path, error.code) == ("spec.contaners", "invalid")
    answer = 'strict decoding error: unknown field "spec.contaners"; did you mean "containers"?'
    assert error.why == answer
    assert error.line == 5


def test_an_unknown_field_of_a_custom_resource_is_refused_though_its_definition_comes_with_it(store: Store) -> None:
    defined = definition()
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    defined["spec"]["versions"][1]["schema"] = {"openAPIV3Schema": schema}
    text = yaml.safe_dump_all([defined, {**widget("w"), "spec": {"a": 1}}])
    [error] = apply_all(parse(text, "f.yaml").wanted, store).tell().errors
    assert (error.path, error.why) == ("spec.a", 'strict decoding error: unknown field "spec.a"')


def test_unknown_fields_are_left_out_with_a_warning_or_without(store: Store) -> None:
    for validation, warned in (("Warn", 1), ("Ignore", 0)):
        outcome = apply_all(parse(MISSPELT, "f.yaml").wanted, store, validation=validation)
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
    assert parsed.wanted == []
    assert parsed.errors
    assert message in parsed.errors[0].message


def test_lists_are_unfolded() -> None:
    item = {"metadata": {"name": "n1"}}
    listed = {"apiVersion": "v1", "kind": "NodeList", "items": [item]}
    [wanted] = parse([listed], "-").wanted
    assert wanted.raw == {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    assert len(parse({"apiVersion": "v1", "kind": "List", "items": [listed, wanted.raw]}, "-").wanted) == 2


def test_a_line_of_a_megabyte_is_read() -> None:
    long = NODE.replace("{name: n1}", "{name: n1, annotations: {note: " + "x" * 1_000_000 + "}}")
    outcome = apply_all(parse(long + "---\n" + BAD, "-").wanted, store := Store(now=lambda: 0.0)).tell()
    assert len(outcome.errors) + len(outcome.results) == 2
    assert all(len(error.message) < 10_000 for error in outcome.errors)
    assert store.count("Pod") == 0


def test_who_applies_a_dump_is_told_once_what_takes_it_as_it_stands(store: Store) -> None:
    with_uids = NODE.replace("name: n1", "name: n1, uid: u1"), POD.replace("name: web", "name: web, uid: u2")
    assert apply_all(parse(POD, "pod.yaml").wanted, store).warnings == []
    outcome = apply_all(parse("---\n".join(with_uids), "dump.yaml").wanted, store)
    [warning] = outcome.warnings
    assert "`kschedd load` loads a dump unchanged" in warning
    assert [result.action for result in outcome.results] == ["created", "unchanged"]


def test_fields_of_client_side_apply_go_with_the_manifest_that_is_applied_by_the_server(store: Store) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {%s}\n"
    for first, then in (("a: '1', b: '2'", "a: '1'"), ("a: '1'", "c: '3'")):
        apply_all(parse(text % first, "a.yaml").wanted, store, manager="kubectl-client-side-apply")
        applied = apply_all(parse(text % then, "a.yaml").wanted, store, manager="kubectl", server_side=True, force=True)
        assert [each.action for each in applied.results] == ["configured"]
        found = store.get("ConfigMap", "default", "c")
        assert ", ".join(f"{key}: '{value}'" for key, value in found.raw["data"].items()) == then
        assert [entry["manager"] for entry in found.metadata["managedFields"]] == ["kubectl"]
