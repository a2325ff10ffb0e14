"""Tests of client libraries: each test runs a program that uses a new daemon like any other cluster.

The programs list, watch, create, patch, apply and delete objects; they read logs and Events, and use a custom resource.
The tests run in real time, and no test depends on a duration.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.conftest import PROGRAMS
from tests.installed_clients import Clients

pytestmark = pytest.mark.full
_TIMEOUT_S = 60
EVENTS = "events: ['ScalingReplicaSet']"
APPLIED = "server-side apply: True"
STEPS = [
    *("available: 2", "pods: 2", "log: hello", "merge patch: 3", APPLIED, EVENTS, "job: 1"),
    *("custom resource: [3]", "deleted: []"),
]
WITHOUT_APPLY = [step for step in STEPS if step != APPLIED]


def run(*command: str | Path) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("name", "program", "steps"),
    [
        pytest.param("official", "official.py", STEPS, id="kubernetes"),
        pytest.param("official-12", "official.py", WITHOUT_APPLY, id="kubernetes-12"),
        pytest.param("asynchronous", "asynchronous.py", STEPS, id="kubernetes_asyncio"),
        pytest.param("kr8s", "kr8s_client.py", WITHOUT_APPLY, id="kr8s"),
        pytest.param("lightkube", "lightkube_client.py", STEPS, id="lightkube"),
        pytest.param("pykube", "pykube_client.py", WITHOUT_APPLY, id="pykube-ng"),
    ],
)
def test_a_python_client(
    name: str, program: str, steps: list[str], clients: Clients, request: pytest.FixtureRequest
) -> None:
    python = clients.environment(name) / "bin" / "python"
    assert run(python, PROGRAMS / program, request.getfixturevalue("kubeconfig")) == steps


def test_an_operator_with_kopf(clients: Clients, request: pytest.FixtureRequest) -> None:
    """Create, resize and delete a custom resource whose operator creates a Deployment."""
    python = clients.environment("kopf") / "bin" / "python"
    assert run(python, PROGRAMS / "operator_kopf.py", request.getfixturevalue("kubeconfig")) == [
        "operator: True",
        "created: True",
        "status: {'deployment': 'web'}",
        "resized: True",
        "finalized: ['g']",
        "collected: True",
        "stopped: True",
    ]


def test_the_javascript_client(clients: Clients, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    modules = clients.environment("node") / "node_modules"
    node = shutil.which("node")
    if node is None:
        pytest.skip("the JavaScript client requires node on PATH")
    (tmp_path / "node_modules").symlink_to(modules)  # Node.js finds modules in the folder of the program
    shutil.copy(PROGRAMS / "node_client.mjs", tmp_path)
    expected = [*STEPS[:4], "server-side apply: true", "events: ScalingReplicaSet", "job: 1", "custom resource: 3"]
    assert run(node, tmp_path / "node_client.mjs", request.getfixturevalue("kubeconfig")) == [*expected, "deleted: 0"]
