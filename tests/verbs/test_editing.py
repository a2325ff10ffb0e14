"""Tests of the verbs edit, whose editors are functions here, and replace."""

import tempfile

import pytest
import yaml

from kschedd.service.errors import RpcError
from kschedd.verbs.objects.editing import merge_patch


@pytest.fixture(autouse=True)
def _files_of_a_test(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def by(change):
    """Return an editor that makes this change to the text."""

    def editor(file) -> int:
        file.write_text(change(file.read_text()))
        return 0

    return editor


def test_what_was_changed_is_sent_as_a_patch(typed, daemon) -> None:
    typed.editor = by(lambda text: text.replace("app: web", "app: shop"))
    assert typed("edit pod web-0") == 0
    assert typed.out == "pod/web-0 edited\n"
    method, params = daemon.calls[-1]
    assert (method, params["type"]) == ("objects.patch", "merge")
    assert params["patch"] == {"metadata": {"labels": {"app": "shop"}}}


@pytest.mark.parametrize("change", [lambda text: text, lambda text: "", lambda text: "# only a comment\n"])
def test_what_was_left_as_it_is_changes_nothing(typed, daemon, change) -> None:
    typed.editor = by(change)
    assert typed("edit pod web-0") == 0
    assert (typed.out, typed.err) == ("", "Edit cancelled, no changes made.\n")
    assert all(method != "objects.patch" for method, _ in daemon.calls)


def test_what_is_refused_is_opened_again_with_the_reason(typed, daemon) -> None:
    seen = []

    def editor(file) -> int:
        seen.append(file.read_text())
        if len(seen) == 1:
            file.write_text(seen[0].replace("app: web", "app: shop"))
        return 0

    def refuse(**named):
        raise RpcError("invalid", 'Pod "web-0" is invalid: no')

    daemon.objects_patch = refuse
    typed.editor = editor
    assert typed("edit pod web-0") == 1
    assert '# Pod "web-0" is invalid: no\n' in seen[1]
    assert "app: shop" in seen[1]
    copy, last = typed.err.splitlines()[-2:]
    assert last == "error: Edit cancelled, no valid changes were saved."
    with open(copy.split('"')[1]) as kept:
        assert yaml.safe_load(kept)["metadata"]["labels"] == {"app": "shop"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text.replace("name: web-0", "name: web-9"), "kind and name was changed"),
        (lambda text: "a: [", "line"),
        (lambda text: "just words", "one object is expected"),
    ],
)
def test_what_is_no_edit_of_the_object_is_told(typed, change, why) -> None:
    typed.editor = by(change)
    assert typed("edit pod web-0") == 1
    assert why in typed.err


@pytest.mark.parametrize(
    ("left", "why"),
    [
        pytest.param(lambda file: file.unlink(), "the editor left no file to read", id="deleted"),
        pytest.param(lambda file: (file.unlink(), file.mkdir()), "Is a directory", id="a-directory"),
        pytest.param(lambda file: file.write_bytes(b"a: \xff\xfe"), "it is no UTF-8; the text is in", id="no-text"),
    ],
)
def test_a_file_that_an_editor_leaves_unreadable_is_told(typed, daemon, left, why) -> None:
    def editor(file) -> int:
        left(file)
        return 0

    typed.editor = editor
    assert typed("edit pod web-0") == 2
    assert why in typed.err
    assert all(method != "objects.patch" for method, _ in daemon.calls)


def test_without_a_terminal_there_is_no_editor(typed) -> None:
    assert typed("edit pod web-0") == 2
    assert "replace -f FILE" in typed.err


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1, "b": 2}, {"b": 2}, {"a": None}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "d": 3}}, {"a": {"c": None, "d": 3}}),
        ({"a": [1, 2]}, {"a": [2]}, {"a": [2]}),
        ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
    ],
)
def test_a_merge_patch_has_only_what_differs(before, after, patch) -> None:
    assert merge_patch(before, after) == patch


def test_replace(typed, daemon) -> None:
    typed.input = b"{apiVersion: v1, kind: Pod, metadata: {name: web-1, labels: {a: b}}}"
    assert typed("replace -f - --dry-run=server") == 0
    assert typed.out == "pod/web-1 replaced (server dry run)\n"
    assert typed("replace -f -") == 0
    assert daemon._find("Pod", "web-1")["metadata"]["labels"] == {"a": "b"}
    assert typed("replace -f - --force") == 0
    assert typed.out == 'pod "web-1" deleted\npod/web-1 replaced\n'
    typed.input = typed.input.replace(b"web-1", b"nope")
    assert typed("replace -f -") == 1
    assert 'pods "nope" not found' in typed.err
    assert typed("replace -f - --grace-period 3") == 2
