"""Tests that manifests are read completely, and that every fault contains its position."""

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from kschedd.api.manifests import read_bytes, read_paths, read_text
from kschedd.api.schemas.fields import FieldError, path_text, steps

POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {}\n"


def names(reading: object) -> list[str]:
    return [manifest.raw["metadata"]["name"] for manifest in reading.manifests]


def test_several_documents() -> None:
    reading = read_text("---\n".join(POD.format(name) for name in "abc"), "f.yaml")
    assert names(reading) == ["a", "b", "c"]
    assert [manifest.line for manifest in reading.manifests] == [1, 6, 11]
    assert not reading.errors


def test_lists_are_unfolded() -> None:
    text = (
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n"
        "- apiVersion: v1\n  kind: PodList\n  items:\n  - metadata: {name: b}\n    spec: {x: 1}\n"
    )
    reading = read_text(text, "f.yaml")
    assert names(reading) == ["a", "b"]
    assert reading.manifests[1].raw["kind"] == "Pod"
    assert reading.manifests[1].raw["apiVersion"] == "v1"
    assert reading.manifests[1].locate("spec.x") == 9


def test_an_empty_list_is_no_fault() -> None:
    assert read_text('{"apiVersion": "v1", "kind": "List", "items": []}', "f").errors == ()


def test_the_place_of_a_fault() -> None:
    text = POD.format("a") + (
        "spec:\n  containers:\n  - name: c\n    resources:\n      requests:\n"
        "        cpu: 1.5.0\n        nvidia.com/gpu: 1\n"
    )
    (manifest,) = read_text(text, "f.yaml").manifests
    error = manifest.error(FieldError("spec.containers[0].resources.requests.cpu", "1.5.0", "no quantity"))
    assert str(error) == "f.yaml:10: spec.containers[0].resources.requests.cpu: no quantity"
    assert manifest.locate("spec.containers[0].resources.requests[nvidia.com/gpu]") == 11
    assert manifest.locate("spec.containers[0].image") == 7


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("just text", 'f:1: "just text": must be a mapping with apiVersion and kind'),
        ("- a", 'f:1: ["a"]: must be a mapping with apiVersion and kind'),
        ("kind: Pod", "f:1: apiVersion: Required value"),
        ("\napiVersion: v1\nkind: 3", "f:3: kind: Invalid value: 3: must be text"),
        (
            "apiVersion: v1\nkind: List\nitems:\n- 3",
            "f:4: items[0]: 3: must be a mapping with apiVersion and kind",
        ),
        ("apiVersion: v1\nkind: List\nitems: 3", "f:3: items: Invalid value: 3: must be a list"),
    ],
)
def test_what_is_no_object(text: str, error: str) -> None:
    reading = read_text(text, "f")
    assert str(reading.errors[0]) == error
    assert not reading.manifests


def test_a_bad_document_among_good_ones() -> None:
    reading = read_text(POD.format("a") + "---\na: [\n---\n" + POD.format("b"), "f.yaml")
    assert names(reading) == ["a", "b"]
    (error,) = reading.errors
    assert (error.file, error.line in (6, 7)) == ("f.yaml", True)


def test_a_long_line_is_not_repeated() -> None:
    reading = read_text("x" * 1_000_000, "f.yaml")
    assert len(str(reading.errors[0])) < 300


def test_bytes_that_are_no_text() -> None:
    (error,) = read_bytes(b"a: 1\nb: \xff\n", "f.yaml").errors
    assert str(error) == "f.yaml:2: not UTF-8 text: byte 0xff at offset 8"


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        pytest.param("a: 1\n".encode("utf-16"), "UTF-16 text: convert it first", id="as-powershell-writes"),
        pytest.param(gzip.compress(b"a: 1\n"), "gzip data: unpack it first", id="gzip"),
        pytest.param(bz2.compress(b"a: 1\n"), "bzip2 data: unpack it first", id="bzip2"),
        pytest.param(lzma.compress(b"a: 1\n"), "xz data: unpack it first", id="xz"),
        pytest.param(b"PK\x03\x04\x14\0", "a zip archive: unpack it first", id="zip"),
        pytest.param(b"dump.json".ljust(257, b"\0") + b"ustar\x0000", "a tar archive: unpack it first", id="tar"),
    ],
)
def test_a_well_known_form_that_is_no_text_is_named(data: bytes, answer: str) -> None:
    (error,) = read_bytes(data, "f.yaml").errors
    assert str(error) == f"f.yaml:1: not UTF-8 text but {answer}"


def test_a_byte_order_mark_is_no_text() -> None:
    assert names(read_bytes(b"\xef\xbb\xbf" + POD.format("a").encode(), "f")) == ["a"]


def test_folders_are_read_in_order_and_whole(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.yaml").write_text(POD.format("b"))
    (tmp_path / "a.json").write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}')
    (tmp_path / "sub" / "c.yml").write_text(POD.format("c"))
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert names(read_paths([tmp_path])) == ["a", "b", "c"]


def test_missing_files_and_empty_folders(tmp_path: Path) -> None:
    missing, empty = read_paths([tmp_path / "none.yaml", tmp_path]).errors
    assert "No such file" in str(missing)
    assert "contains no .yaml, .yml, .json files" in str(empty)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("spec.containers[0].name", ("spec", "containers", 0, "name")),
        ("metadata.labels[example.com/a]", ("metadata", "labels", "example.com/a")),
        ("", ()),
    ],
)
def test_paths(path: str, parts: tuple[str | int, ...]) -> None:
    assert steps(path) == parts
    assert path_text(parts) == path
