"""Changes of remedies as diffs of the user's file."""

from typing import Any

import pytest

from kschedd.api.manifests import read_text
from kschedd.verbs.scheduler.manifest_changes import file_diff

TEXT = """\
# first
kind: ConfigMap
apiVersion: v1
metadata: {name: c}
---
kind: Pod  # mine
apiVersion: v1
metadata: {name: p}
spec:
  nodeSelector: {disk: sdd, "zone": 'b'}
  containers: [{name: a, image: i, resources: {requests: {cpu: 900}}}]
"""


def _changed(*changes: dict[str, Any]) -> list[str]:
    _, pod = read_text(TEXT, "app.yaml").manifests
    return [line for line in file_diff(pod, changes).splitlines() if line[:1] in "+-@"]


def _replace(path: str, value: object) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def test_values_are_replaced_in_the_text() -> None:
    found = _changed(
        _replace("/spec/nodeSelector/disk", "ssd"),
        _replace("/spec/nodeSelector/zone", "a"),
        _replace("/spec/containers/0/resources/requests/cpu", 1),
    )
    assert found == [
        "--- app.yaml",
        "+++ app.yaml",
        "@@ -7,5 +7,5 @@",
        "-  nodeSelector: {disk: sdd, \"zone\": 'b'}",
        "-  containers: [{name: a, image: i, resources: {requests: {cpu: 900}}}]",
        "+  nodeSelector: {disk: ssd, \"zone\": 'a'}",
        "+  containers: [{name: a, image: i, resources: {requests: {cpu: 1}}}]",
    ]


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        pytest.param(
            {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "k"}},
            ["+  tolerations:", "+  - key: k"],
            id="added-to-a-list-that-is-not-there",
        ),
        pytest.param({"op": "remove", "path": "/spec/nodeSelector/disk"}, ["-    disk: sdd"], id="removed"),
        pytest.param(_replace("/spec/tolerations/1/key", "k"), [], id="not-in-the-file"),
        pytest.param({"op": "remove", "path": "/spec/priority"}, [], id="a-default"),
    ],
)
def test_other_changes_are_shown_in_the_object(change: dict[str, Any], lines: list[str]) -> None:
    assert [line for line in _changed(change) if line[:3] not in ("---", "+++") and line[:1] != "@"] == lines
