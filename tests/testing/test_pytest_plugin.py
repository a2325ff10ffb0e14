"""Tests of the pytest plugin, used by a test suite in an environment with kschedd."""

import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis.strategies import integers

from kschedd import Cluster
from kschedd.testing import strategies

TESTS = """
import pytest
from kschedd import pod

def test_an_empty_cluster(cluster):
    assert cluster.pods[:] == cluster.pods and len(cluster.nodes) == 0

@pytest.mark.kschedd(nodes=2, version="1.36")
class TestMarked:
    def test_of_the_class(self, cluster):
        assert len(cluster.nodes) == 2

    @pytest.mark.kschedd(nodes=3)
    def test_the_closest_marker_wins(self, cluster):
        assert len(cluster.nodes) == 3

@pytest.mark.kschedd(versions=["1.34", "1.37"], nodes=1)
def test_by_two_releases(cluster):
    cluster.apply(pod("a", cpu="9"))
    print(cluster.message("a"))

@pytest.mark.kschedd(versions=["1.34", "1.37"])
def test_without_a_cluster():
    assert True
"""


def run(folder: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:trio", "-p", "no:xdist", "-v"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    return done.stdout + done.stderr


def test_fixture_marker_and_scenarios(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nkschedd_scenarios = scenarios/*.txt\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    (scenarios / "good.txt").write_text("get nodes\n----\nNo resources found.\n")
    (scenarios / "bad.txt").write_text("get nodes\n----\nsomething else\n")
    (tmp_path / "notes.txt").write_text("these are not a scenario\n")
    out = run(tmp_path)
    assert "1 failed, 7 passed" in out
    assert "test_by_two_releases[1.34] PASSED" in out
    assert "test_by_two_releases[1.37] PASSED" in out
    assert "bad.txt:1: get nodes" in out
    assert "-something else" in out
    assert "Traceback" not in out


def test_the_plugin_imports_nothing_heavy() -> None:
    program = "import sys, kschedd.testing.pytest_plugin; print({'trio', 'numpy', 'attrs'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


@given(strategies.node_lists(), strategies.pod_lists(), integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_no_node_is_given_more_than_it_has(nodes: list[dict], pods: list[dict], seed: int) -> None:
    with Cluster(nodes, seed=seed) as cluster:
        cluster.apply(*pods)
        assert len(cluster.pods) == len(pods)
        for node in cluster.nodes:
            assert node.pods <= node.pods_allocatable
            assert node.cpu_requested <= node.cpu_allocatable
            assert node.memory_requested <= node.memory_allocatable
