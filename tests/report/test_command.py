"""Tests of `kschedd simulate --report` and `--redact`."""

from pathlib import Path

import pytest

from kschedd.cli import main

CLUSTER = """apiVersion: v1
kind: Node
metadata: {name: acme-node, labels: {kubernetes.io/hostname: acme-node, topology.kubernetes.io/zone: acme-zone}}
status:
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: acme-shop, namespace: default}
spec:
  replicas: 6
  selector: {matchLabels: {app: acme-shop}}
  template:
    metadata: {labels: {app: acme-shop}}
    spec:
      containers: [{name: c, image: acme/shop, resources: {requests: {cpu: "1"}}}]
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    return tmp_path


def test_a_simulation_writes_its_report_twice_the_same(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for name in ("a.html", "b.html"):
        assert main(["simulate", "-f", str(cluster / "cluster.yaml"), "--report", str(cluster / name)]) == 1
        texts.append((cluster / name).read_bytes())
    assert texts[0] == texts[1]
    assert b"acme-node" in texts[0]
    assert b"Insufficient cpu" in texts[0]
    assert "4 pods placed, 2 pending" in capsys.readouterr().out


def test_a_redacted_report_has_none_of_the_names(cluster: Path) -> None:
    target = cluster / "r.html"
    assert main(["simulate", "-f", str(cluster / "cluster.yaml"), "--report", str(target), "--redact"]) == 1
    assert "acme" not in target.read_text()


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        pytest.param(["--redact"], "--redact goes with --report", id="redact-alone"),
        pytest.param(["--report", "none/such/r.html"], "none/such/r.html: cannot be written", id="no-such-folder"),
    ],
)
def test_what_cannot_be_is_said_before_the_run(
    cluster: Path, capsys: pytest.CaptureFixture[str], flags: list[str], why: str
) -> None:
    assert main(["simulate", "-f", str(cluster / "cluster.yaml"), *flags]) == 2
    reported = capsys.readouterr()
    assert why in reported.err
    assert reported.out == ""


def test_check_reports_what_does_not_fit_in_its_fork(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = cluster / "r.html"
    assert main(["check", "-f", str(cluster / "cluster.yaml"), "--report", str(target)]) == 1
    text = target.read_text()
    assert "does not fit: 2 pods pending" in capsys.readouterr().out
    assert "does not fit: 2 pods pending" in text
    assert "What would help:" in text
    assert 'id="checked"' in text
    assert "NodeResourcesFit" in text
    assert main(["check", "-f", str(cluster / "cluster.yaml"), "--report", str(target), "--redact"]) == 1
    assert "acme" not in target.read_text()
