"""The release that a dump's nodes show, and the supported version that decides by it."""

from typing import Any

import pytest

from kschedd.cli import main
from kschedd.config.versions.kube_versions import DEFAULT, KUBE_VERSIONS
from kschedd.dumps.dumped_release import DumpedRelease, kubelet_version
from kschedd.dumps.loading import read_dump

OTHER = next(one for one in KUBE_VERSIONS.values() if one.name.count(".") == 1 and one is not DEFAULT)


@pytest.mark.parametrize(
    ("versions", "minor"),
    [
        pytest.param(["v1.36.3-gke.100", "v1.35.1+k3s1"], 36, id="the-newest-without-what-vendors-add"),
        pytest.param(["1.9.11"], 9, id="compared-as-numbers"),
        pytest.param(["", "x", "v2.1.0", "v1.x"], None, id="none-that-can-be-read"),
        pytest.param([], None, id="no-nodes"),
    ],
)
def test_the_newest_kubelet_shows_the_release(versions: list[str], minor: int | None) -> None:
    assert DumpedRelease.of(versions) == DumpedRelease(minor)


@pytest.mark.parametrize(
    ("minor", "version", "words"),
    [
        pytest.param(None, DEFAULT.name, "", id="nothing-shown"),
        pytest.param(int(DEFAULT.name.split(".")[1]), DEFAULT.name, "", id="the-default-one"),
        pytest.param(
            int(OTHER.name.split(".")[1]), OTHER.name, f"Kubernetes {OTHER.name} apply, the version of", id="other"
        ),
        pytest.param(33, "1.34", "1.33, which is not supported; 1.34 is the closest", id="older"),
        pytest.param(99, "1.37", "1.99, which is not supported; 1.37 is the newest supported", id="newer"),
    ],
)
def test_each_release_has_a_version_and_a_reason(minor: int | None, version: str, words: str) -> None:
    release = DumpedRelease(minor)
    assert release.version.name == version
    assert words in release.reason
    assert bool(release.reason) is bool(words)


def test_the_difference_of_an_older_release_is_named_once() -> None:
    assert "device claims" in DumpedRelease(33).reason
    assert "more events" not in DumpedRelease(33).reason
    assert "more events" in DumpedRelease(31).reason


@pytest.mark.parametrize("status", [None, "x", {}, {"nodeInfo": None}, {"nodeInfo": {"kubeletVersion": None}}])
def test_a_node_need_not_state_a_version(status: Any) -> None:
    assert kubelet_version({"status": status}) == ""


def node(version: str) -> str:
    return f"""\
apiVersion: v1
kind: Node
metadata: {{name: node-1, uid: u, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z"}}
status: {{allocatable: {{cpu: 4, pods: 9}}, nodeInfo: {{kubeletVersion: {version}}}}}
"""


def test_a_dump_states_its_release(tmp_path: Any) -> None:
    (tmp_path / "dump.yaml").write_text(node("v1.35.2"))
    assert read_dump([str(tmp_path / "dump.yaml")]).release == DumpedRelease(35)


def test_simulate_decides_by_the_release_of_the_dump(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dump.yaml").write_text(node(f"v{OTHER.name}.0"))
    assert main(["simulate", "--from", str(tmp_path / "dump.yaml")]) == 0
    assert f"Kubernetes {OTHER.name} apply, the version of the nodes" in capsys.readouterr().err
    assert main(["simulate", "--from", str(tmp_path / "dump.yaml"), "--kube-version", DEFAULT.name]) == 0
    assert "the version of the nodes" not in capsys.readouterr().err
