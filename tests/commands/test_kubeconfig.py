"""Tests of the kubeconfig that `kschedd kubeconfig` prints."""

from pathlib import Path

import pytest

from kschedd.cli import main


def _kubeconfig(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["kubeconfig", *words]) == 0
    return capsys.readouterr().out


def test_a_server_without_tls_is_not_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert "insecure-skip-tls-verify: true" in _kubeconfig(capsys, "--server", "http://127.0.0.1:8080")


def test_a_server_with_tls_is_verified(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "insecure" not in _kubeconfig(capsys, "--server", "https://127.0.0.1:8443")
    authority = tmp_path / "ca.pem"
    authority.write_text("pem")
    assert "insecure" not in _kubeconfig(
        capsys, "--server", "http://127.0.0.1:8080", "--certificate-authority", str(authority)
    )
