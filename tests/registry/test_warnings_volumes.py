"""Tests of warnings about files of one volume with conflicting paths.

The expected texts are those of kube-apiserver 1.34.9.
"""

from typing import Any

import pytest

from kschedd.registry.warnings.volumes import overlapping_paths

Raw = dict[str, Any]


def items(*paths: str) -> list[Raw]:
    return [{"key": "k", "path": path} for path in paths]


@pytest.mark.parametrize(
    ("volume", "warned"),
    [
        pytest.param({"configMap": {"name": "c", "items": items("a", "b")}}, [], id="two-files"),
        pytest.param({"configMap": {"name": "c", "items": items("a", "ab", "a.b")}}, [], id="names-that-begin-alike"),
        pytest.param(
            {"configMap": {"name": "c", "items": items("p", "p")}},
            ['volume "v" (ConfigMap "c"): overlapping paths: "p" with "p"'],
            id="one-file-twice",
        ),
        pytest.param(
            {"secret": {"secretName": "s", "items": items("a/b/", "a", "c/d", "c/d/e")}},
            [
                'volume "v" (Secret "s"): overlapping paths: "a" with "a/b"',
                'volume "v" (Secret "s"): overlapping paths: "c/d/e" with "c/d"',
            ],
            id="a-file-and-a-folder",
        ),
        pytest.param(
            {"downwardAPI": {"items": [{"path": "a"}, {"path": "a/b"}]}},
            ['volume "v" (DownwardAPI): overlapping paths: "a/b" with "a"'],
            id="downward-api",
        ),
        pytest.param(
            {
                "projected": {
                    "sources": [
                        {"configMap": {"name": "c", "items": items("a")}},
                        {"serviceAccountToken": {"path": "a/token"}},
                        {"secret": {"name": "s"}},
                        {},
                        {"downwardAPI": {"items": [{"path": "a"}]}},
                    ]
                }
            },
            [
                'volume "v" (Projected): overlapping paths: "a/token" (ServiceAccountToken) with "a" (ConfigMap "c")',
                'volume "v" (Projected) has no sources provided',
                'volume "v" (Projected): overlapping paths: "a" (DownwardAPI) with "a" (ConfigMap "c")',
                'volume "v" (Projected): overlapping paths: "a" (DownwardAPI) with "a/token" (ServiceAccountToken)',
            ],
            id="sources-of-one-volume",
        ),
    ],
)
def test_files_in_each_others_place(volume: Raw, warned: list[str]) -> None:
    assert list(overlapping_paths({"name": "v", **volume})) == warned
