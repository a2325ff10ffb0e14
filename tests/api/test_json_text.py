"""Unpaired surrogates, which cannot be encoded, are replaced by U+FFFD in all received JSON."""

import json
from pathlib import Path

import pytest

from kschedd.api.text.documents import read_documents
from kschedd.api.text.json_text import without_lone_surrogates
from kschedd.apiserver.codec.bodies import read_body, read_json
from kschedd.dumps.sources import read_sources
from kschedd.extenders.messages import first_value
from kschedd.managed_fields.field_set import read_fields_v1, value_step

HALVES = [
    pytest.param(r'"\ud800"', "�", id="high"),
    pytest.param(r'"\uDFFFx"', "�x", id="low"),
    pytest.param(r'"\ud83d\ude00"', "😀", id="a-pair"),
    pytest.param(r'"\ud83d\ud83d\ude00"', "�😀", id="high-and-a-pair"),
    pytest.param(r'"\ude00\ud83d"', "��", id="the-wrong-way-round"),
    pytest.param(r'"\\ud800"', r"\ud800", id="an-escaped-backslash"),
    pytest.param(r'"\\\ud800"', "\\�", id="and-a-half-behind-it"),
    pytest.param(r'"\ufffd\n"', "�\n", id="neither"),
]


@pytest.mark.parametrize(("text", "value"), HALVES)
def test_a_half_is_replaced_as_go_does(text: str, value: str) -> None:
    assert json.loads(without_lone_surrogates(text)) == value


@pytest.mark.parametrize(("text", "value"), HALVES)
def test_so_it_is_in_requests_manifests_dumps_and_answers_of_extenders(text: str, value: str, tmp_path: Path) -> None:
    whole = (
        f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a", "uid": "u"}}, "data": {{"k": {text}}}}}'
    )
    read = [
        read_json(whole.encode()).value,
        read_body(whole.encode(), "application/yaml", "ConfigMap").value,
        next(iter(read_documents(whole))).value,
        first_value(whole.encode()),
    ]
    for name, content in (
        ("one.json", whole),
        ("many.json", f'{{"kind": "List", "apiVersion": "v1", "items": [{whole}]}}'),
    ):
        (tmp_path / name).write_text(content)
        read += [found.raw for found in read_sources([str(tmp_path / name)]).found]
    assert len(read) == 6
    assert all(each["data"]["k"] == value for each in read)


def test_bytes_that_are_no_utf_8_are_replaced_one_by_one() -> None:
    assert read_json(b'"\xed\xa0\x80"').value == "���"


def test_so_it_is_in_the_steps_of_managed_fields() -> None:
    found = read_fields_v1({"f:finalizers": {r'v:"\ud800"': {}}})
    assert list(found.children["f:finalizers"].children) == [value_step("�")]
