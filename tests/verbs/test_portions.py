"""Tests of splitting long requests: faults keep their lines, and input that cannot be split is rejected."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.text.portions import portions
from tests.verbs.fake_daemon import FakeDaemon

LIMIT = 300_000
NODE = "apiVersion: v1\nkind: Node\nmetadata: {{name: n{}, annotations: {{note: {}}}}}\n"


@pytest.fixture
def small(daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the manifests of each request to a daemon with a small request limit."""
    requests: list[Any] = []
    plain = daemon.objects_apply

    def apply(manifests: Any, **flags: Any) -> Any:
        requests.append(manifests)
        return plain(manifests, **flags)

    monkeypatch.setattr(daemon, "objects_apply", apply)
    monkeypatch.setattr(daemon, "rpc_ping", lambda: {"pong": True, "max_request_body_bytes": LIMIT}, raising=False)
    return requests


def test_a_text_is_cut_between_documents_and_each_part_knows_its_lines() -> None:
    text = "a: 1\n---\nb: 2\n---\n" + "c: 3\n" * 10 + "---\nd: 4\n"
    parts = list(portions(text, 20))
    assert "".join(part for part, _ in parts) == text
    assert [text.splitlines()[after] for _, after in parts] == ["a: 1", "---", "---"]
    assert list(portions(text, 1000)) == [(text, 0)]


def test_many_documents_go_in_several_requests(typed: Callable[[str], int], small: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("---\n".join(NODE.format(number, "x" * 50_000) for number in range(20)))
    assert typed(f"apply -f {file} -o name") == 0
    assert typed.out.split() == [f"node/n{number}" for number in range(20)]
    assert len(small) == 4
    assert all(len(text) <= LIMIT for text in small)


def test_a_fault_keeps_its_line(typed: Callable[[str], int], small: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("---\n".join([*(NODE.format(number, "x" * 90_000) for number in range(6)), "kind: Node\n"]))
    assert typed(f"apply -f {file}") == 1
    assert f"{file}:25: apiVersion" in typed.err
    assert len(small) == 2


def test_a_list_that_is_too_long_goes_item_by_item(
    typed: Callable[[str], int], small: list[Any], tmp_path: Path
) -> None:
    items = "".join(f"- {NODE.format(n, 'x' * 90_000)}".replace("\n", "\n  ").rstrip() + "\n" for n in range(6))
    file = tmp_path / "list.yaml"
    file.write_text(f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert typed(f"apply -f {file}") == 0
    assert [len(manifests) for manifests in small] == [3, 3]


def test_one_object_that_is_too_large_is_refused_and_the_others_applied(
    typed: Callable[[str], int], small: list[Any], tmp_path: Path
) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("---\n".join([NODE.format(0, "x"), NODE.format(1, "x" * 400_000)]))
    assert typed(f"apply -f {file}") == 1
    assert "node/n0 created" in typed.out
    assert f"{file}:5: Request entity too large: limit is {LIMIT}" in typed.err


def test_what_is_atomic_is_one_request_or_none(typed: Callable[[str], int], small: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("---\n".join(NODE.format(number, "x" * 50_000) for number in range(20)))
    assert typed(f"apply -f {file} --atomic") == 1
    assert f"Request entity too large: limit is {LIMIT}" in typed.err
    assert small == []


def test_faults_of_namesakes_in_a_long_list_have_lines_of_their_own_and_are_told_once(
    typed: Callable[[str], int], daemon: FakeDaemon, small: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = "".join(
        f"- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: web\n    namespace: {space}\n"
        f"    annotations: {{note: {'x' * 200_000}}}\n"
        for space in ("left", "right")
    )
    file = tmp_path / "list.yaml"
    file.write_text(f"apiVersion: v1\nkind: List\nitems:\n{items}")

    def refused(manifests: Any, **flags: Any) -> Any:
        metas = [raw["metadata"] for raw in manifests]
        fault = {"source": "list.yaml", "line": 0, "path": "metadata.name", "value": "web", "why": "is wrong"}
        fault |= {"message": "metadata.name: is wrong", "code": "invalid", "kind": "Pod"}
        errors = [{**fault, "name": meta["name"], "namespace": meta["namespace"]} for meta in metas]
        return {"results": [], "errors": errors * 2, "warnings": [], "unsupported": []}

    monkeypatch.setattr(daemon, "objects_apply", refused)
    assert typed(f"apply -f {file}") == 1
    assert typed.err.splitlines() == [
        f"error: {file}:7: Pod left/web: metadata.name: is wrong",
        f"error: {file}:13: Pod right/web: metadata.name: is wrong",
    ]
