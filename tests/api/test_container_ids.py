"""Tests of the IDs of simulated containers and images."""

from typing import Any

import pytest

from kschedd.api.container_ids import image_id, with_container_ids
from tests.controllers.kubelets.cluster import KubeletCluster, init

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        pytest.param("nginx", "docker.io/library/nginx", id="library"),
        pytest.param("team/web:2", "docker.io/team/web", id="docker-hub"),
        pytest.param("localhost:5000/web:2", "localhost:5000/web", id="port-and-tag"),
        pytest.param(f"quay.io/team/web:2@{DIGEST}", "quay.io/team/web", id="tag-and-digest"),
    ],
)
def test_an_image_id_is_its_repository_and_a_digest(image: str, repository: str) -> None:
    name, _, digest = image_id(image).partition("@")
    assert name == repository
    assert digest.startswith("sha256:")
    assert len(digest) == len(DIGEST)
    assert digest == DIGEST if "@" in image else digest != DIGEST
    assert image_id("nginx") == image_id("nginx:latest") != image_id("nginx:1")


def entries(cluster: KubeletCluster, name: str = "web") -> list[Any]:
    found = with_container_ids(cluster.pod(name).raw)["status"]
    return [*(found.get("initContainerStatuses") or ()), *found["containerStatuses"]]


def test_each_run_of_a_container_has_an_id() -> None:
    cluster = KubeletCluster()
    cluster.run("other")
    cluster.run(annotations={"run-seconds": "5", "exit-code": "1"}, initContainers=[init("first")])
    (other,) = entries(cluster, "other")
    first, running = entries(cluster)
    assert first["state"]["terminated"]["containerID"] == first["containerID"]
    assert len({each["containerID"] for each in (other, first, running)}) == 3
    cluster.until(6)
    _, again = entries(cluster)
    assert (again["restartCount"], again["lastState"]["terminated"]["containerID"]) == (1, running["containerID"])
    assert again["containerID"] != running["containerID"]
    cluster.until(12)
    _, waiting = entries(cluster)
    assert waiting["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert waiting["containerID"] == waiting["lastState"]["terminated"]["containerID"] == again["containerID"]


def test_other_statuses_do_not_change() -> None:
    cluster = KubeletCluster()
    cluster.run(annotations={"image-pull": "fails"})
    assert "containerID" not in entries(cluster)[0]
    stated = {"name": "app", "image": "a", "imageID": "docker://x", "state": {"running": {}}}
    raw = {"kind": "Pod", "metadata": {"uid": "u"}, "status": {"containerStatuses": [stated]}}
    assert with_container_ids(raw) == raw
    assert with_container_ids({"kind": "Node", "status": {}}) == {"kind": "Node", "status": {}}
