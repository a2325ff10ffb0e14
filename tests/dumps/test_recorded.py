"""Lists that a real kube-apiserver (1.34.9) answered clients with, taken as dumps: every object as it was.

The records have placeholders for uids, versions and times, which get values of their form here.
"""

import gzip
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kschedd.dumps.loading import LoadOptions, read_dump
from kschedd.dumps.saving import dump_objects
from tests.full_run import FULL, part

Raw = dict[str, Any]

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("KSCHEDD_SHARED") or ROOT.parent / "shared")
RECORDS = sorted((SHARED / "apiserver-conversations").glob("*/*.jsonl.gz"))
_UIDS = uuid.UUID("0ddba11a-0000-4000-8000-000000000000")
_LEFT_OUT = ("EventList", "LeaseList")
_OF_LISTS = ("kind", "apiVersion")
_VALUES = {
    "<time>": "2026-11-21T10:00:00Z",
    "<ip>": "10.0.0.9",
    "<nodeport>": "30080",
    "<list-rv>": "9000",
}
_UID, _VERSION, _NAME = re.compile(r"<uid[^>\"]*>"), re.compile(r"<rv(\d+)>"), re.compile(r"<gen-(\d+)>")


def _with_values(text: str) -> str:
    text = _UID.sub(lambda found: str(uuid.uuid5(_UIDS, found[0])), text)
    text = _NAME.sub(r"gen\1", _VERSION.sub(r"\1", text))
    for placeholder, value in _VALUES.items():
        text = text.replace(placeholder, value)
    return text


def _lists(file: Path) -> Iterator[Raw]:
    """Yield the non-empty lists that the server returned."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            for request in json.loads(_with_values(line)).get("requests", ()):
                answer = request.get("response")
                if not isinstance(answer, dict) or request.get("method") != "GET":
                    continue
                answer = answer.get("$protobuf", answer)
                if str(answer.get("kind")).endswith("List") and answer.get("items"):
                    yield answer


@pytest.mark.skipif(not RECORDS, reason="no recorded conversations in the folder of shared data (KSCHEDD_SHARED)")
def test_what_a_real_server_answered_is_saved_as_it_was_loaded(tmp_path: Path) -> None:
    taken = 0
    for file in part(4, RECORDS):
        for number, answer in enumerate(_lists(file)):
            if answer["kind"] in _LEFT_OUT:
                continue
            dump = tmp_path / "dump.json"
            dump.write_text(json.dumps(answer))
            prepared = read_dump([str(dump)], LoadOptions(keep_secrets=True, complete=False))
            assert prepared.errors == [], (file, number)
            saved = dump_objects((obj.raw for obj in prepared.objects), keep_secrets=True)
            found = {_key(raw): _kept(raw) for raw in saved}
            assert found == {_key(raw): _kept(raw) for raw in answer["items"]}, (file, number)
            taken += len(found)
    assert taken > (1000 if FULL else 100)


def _key(raw: Mapping[str, Any]) -> tuple[str, str]:
    return raw["metadata"].get("namespace", ""), raw["metadata"]["name"]


def _kept(raw: Mapping[str, Any]) -> Any:
    """Return the part of an object that must stay: all but managedFields and the version.

    The kind is the list's, and a null counts as an absent value.
    """
    meta = {key: value for key, value in raw["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return _without_nulls({key: value for key, value in {**raw, "metadata": meta}.items() if key not in _OF_LISTS})


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
