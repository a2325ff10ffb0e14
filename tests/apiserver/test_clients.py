"""Tests of installed Kubernetes clients on the REST API over TCP: the usual operations work.

The tests run in real time, because the clients wait in threads; no test depends on a duration.
"""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trio

from kschedd.access.addresses import Address
from kschedd.access.credentials import ListenSettings
from kschedd.apiserver.serving import http_face
from kschedd.config.versions.kube_versions import DEFAULT
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.parts import without_parts
from kschedd.daemon import cluster_actors
from tests.apiserver.asking import node, pod

T = TypeVar("T")


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """Run a cluster with a scheduler, kubelets and a node; yield the address of its REST API."""
    controllers = without_parts(embedded_controllers(), {"controllers"})
    settings = ListenSettings(Address("127.0.0.1", 0))
    async with (
        cluster_actors(controllers=controllers) as cluster,
        http_face(settings.load(), cluster, "test", 3 << 20) as face,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(face.run)
        await cluster.store.create(node("n1"))
        yield face.url
        face.shut_down(0)


async def in_thread(work: Callable[[str], T], url: str) -> T:
    with trio.fail_after(120):
        return await trio.to_thread.run_sync(work, url, abandon_on_cancel=True)


# caused by the way in which the client reads an error
@pytest.mark.filterwarnings("ignore:HTTPResponse.getheaders:DeprecationWarning")
async def test_the_official_client() -> None:
    """Create, list, watch until running, patch, conflict, delete."""

    def work(url: str) -> list[str]:
        from kubernetes import client, watch

        configuration = client.Configuration(host=url)
        reported = []
        with client.ApiClient(configuration) as api:
            core = client.CoreV1Api(api)
            core.create_namespaced_pod("default", pod("a"))
            for event in watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=60):
                if event["object"].status.phase == "Running":
                    reported.append(f"{event['object'].metadata.name} runs on {event['object'].spec.node_name}")
                    break
            stale = core.read_namespaced_pod("a", "default")
            core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"x": "1"}}})
            try:
                core.replace_namespaced_pod("a", "default", stale)
            except client.ApiException as refused:
                reported.append(f"{refused.status} {refused.reason}")
            listed = core.list_namespaced_pod("default", label_selector="x=1", limit=10)
            reported += [each.metadata.name for each in listed.items]
            core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
            version = client.VersionApi(api).get_code().git_version
            reported.append(version)
        return reported

    async with serving() as url:
        assert await in_thread(work, url) == ["a runs on n1", "409 Conflict", "a", f"v{DEFAULT.patch}"]


@pytest.mark.filterwarnings("ignore:Kubernetes version")  # newer than the versions that kr8s supports
async def test_kr8s(tmp_path: Path) -> None:
    """Use kr8s with its own discovery, from a kubeconfig."""

    def work(url: str) -> list[str]:
        import kr8s
        from kr8s.objects import Pod

        config = tmp_path / "kubeconfig"
        config.write_text(KUBECONFIG.format(url=url))
        api = kr8s.api(kubeconfig=str(config))
        one: Any = Pod(pod("a", namespace="default"), api=api)
        one.create()
        one.wait("jsonpath='{.status.phase}'=Running", timeout=60)
        one.label({"x": "1"})
        reported = [each.name for each in api.get("pods", namespace="default", label_selector="x=1")]
        reported += [each.name for each in api.get("nodes")]
        one.delete()
        return reported

    async with serving() as url:
        assert await in_thread(work, url) == ["a", "n1"]


KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u, namespace: default}}}}]
current-context: c
"""


def kubectls() -> list[str]:
    """Return the programs in KSCHEDD_KUBECTL (see kubectls.py), or else the one on PATH."""
    named = [each for each in os.environ.get("KSCHEDD_KUBECTL", "").split(os.pathsep) if each]
    found = shutil.which("kubectl")
    return named or ([found] if found else [])


@pytest.mark.parametrize("kubectl", kubectls() or [""], ids=lambda path: Path(path).name or "none")
async def test_kubectl(tmp_path: Path, kubectl: str) -> None:
    if not kubectl:
        pytest.skip("there is no kubectl on PATH: name one, or several, in KSCHEDD_KUBECTL")

    def work(url: str) -> list[str]:
        config = tmp_path / "kubeconfig"
        config.write_text(KUBECONFIG.format(url=url))
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(config)}

        def run(*words: str) -> str:
            done = subprocess.run([kubectl, *words], capture_output=True, text=True, env=environment, timeout=100)
            assert done.returncode == 0, done.stderr
            return done.stdout

        reported = [
            run("run", "a", "--image=example/app"),
            run("wait", "--for=jsonpath={.status.phase}=Running", "pod/a", "--timeout=60s"),
            run("get", "pods", "-o", "custom-columns=N:.metadata.name,ON:.spec.nodeName", "--no-headers"),
            run("get", "pods", "--no-headers"),
            run("label", "pod", "a", "x=1"),
            run("create", "deployment", "d", "--image=example/app", "--replicas=2"),
            run("scale", "deployment", "d", "--replicas=3"),
            run("get", "deployment", "d", "-o", "jsonpath={.spec.replicas}"),
            run("delete", "pod", "a", "--now"),
        ]
        return [" ".join(each.split()) for each in reported]

    async with serving() as url:
        reported = await in_thread(work, url)
    assert reported[:3] == ["pod/a created", "pod/a condition met", "a n1"]
    assert reported[3].startswith("a 1/1 Running 0 ")
    assert reported[4:8] == ["pod/a labeled", "deployment.apps/d created", "deployment.apps/d scaled", "3"]
    assert reported[8].startswith('pod "a" deleted')
