"""Test of Kubernetes' JavaScript client with the kubeconfig that `kschedd kubeconfig` prints for a plain HTTP server.

The package must be in the folder `KSCHEDD_NODE_MODULES`; without it, or without node, the test is skipped.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kschedd.cli import main
from tests.apiserver.test_clients import in_thread, serving

_SCRIPT = """
import * as k8s from "@kubernetes/client-node";
const config = new k8s.KubeConfig();
config.loadFromFile("kubeconfig");
const core = config.makeApiClient(k8s.CoreV1Api);
const body = {metadata: {name: "m"}, data: {a: "b"}};
await core.createNamespacedConfigMap({namespace: "default", body});
const found = await core.listNamespacedConfigMap({namespace: "default"});
console.log(found.items.map(each => each.metadata.name + " " + each.data.a).join());
const watch = new k8s.Watch(config);
const controller = await watch.watch("/api/v1/namespaces/default/configmaps", {}, (type, object) => {
  console.log(type, object.metadata.name);
  controller.abort();
}, () => {});
"""


def _kubeconfig(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["kubeconfig", *words]) == 0
    return capsys.readouterr().out


def _node_and_modules() -> tuple[str | None, str | None]:
    modules = os.environ.get("KSCHEDD_NODE_MODULES", "")
    return shutil.which("node"), modules if Path(modules, "@kubernetes", "client-node").is_dir() else None


def test_a_server_without_tls_is_not_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert "insecure-skip-tls-verify: true" in _kubeconfig(capsys, "--server", "http://127.0.0.1:8080")


def test_a_server_with_tls_is_verified(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "insecure" not in _kubeconfig(capsys, "--server", "https://127.0.0.1:8443")
    authority = tmp_path / "ca.pem"
    authority.write_text("pem")
    assert "insecure" not in _kubeconfig(
        capsys, "--server", "http://127.0.0.1:8080", "--certificate-authority", str(authority)
    )


async def test_client_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node, modules = _node_and_modules()
    if node is None or modules is None:
        pytest.skip(
            "needs node and @kubernetes/client-node: npm install it, and name node_modules in KSCHEDD_NODE_MODULES"
        )
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "script.mjs").write_text(_SCRIPT)

    def work(url: str) -> str:
        (tmp_path / "kubeconfig").write_text(_kubeconfig(capsys, "--server", url))
        done = subprocess.run([node, "script.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async with serving() as url:
        assert await in_thread(work, url) == "m b\nADDED m\n"
