"""Which packages know of which: arrows point down only."""

import ast
from pathlib import Path

import pytest

import kschedd

ROOT = Path(kschedd.__file__).parent


def imported(package: str) -> set[str]:
    """The packages of ours that a package's modules import, wherever in the module."""
    found = set()
    for file in (ROOT / package).rglob("*.py"):
        for statement in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(statement, ast.ImportFrom):
                names = [statement.module or ""]
            elif isinstance(statement, ast.Import):
                names = [alias.name for alias in statement.names]
            else:
                continue
            found |= {name.split(".")[1] for name in names if name.startswith("kschedd.")}
    return found - {package}


@pytest.mark.parametrize(
    ("package", "unknown"),
    [
        pytest.param("actors", {"simulate", "conformance", "explain", "rpc"}, id="actors-know-no-simulation"),
        pytest.param("simulate", {"actors", "rpc"}, id="simulations-know-no-actors"),
        pytest.param(
            "scheduling", {"actors", "simulate", "explain", "rpc", "conformance"}, id="the-driver-knows-neither"
        ),
        pytest.param("queue", {"scheduling", "actors", "simulate", "explain", "rpc"}, id="the-queue-knows-no-driver"),
        pytest.param("plugins", {"scheduling", "queue", "actors", "simulate"}, id="plugins-know-the-framework-only"),
    ],
)
def test_packages(package: str, unknown: set[str]) -> None:
    assert imported(package).isdisjoint(unknown)


def modules_that_import(name: str) -> set[str]:
    """The modules of ours, by path, that import this module of ours."""
    wanted = f"from {name} import "
    files = ROOT.rglob("*.py")
    return {str(file.relative_to(ROOT)) for file in files if wanted in file.read_text(encoding="utf-8")}


def test_only_the_wiring_knows_the_embedded_store() -> None:
    wiring = ("store/", "actors/store.py", "daemon.py", "simulate/", "conformance/", "bench/")
    knowing = modules_that_import("kschedd.store.store")
    assert "daemon.py" in knowing
    assert [name for name in sorted(knowing) if not name.startswith(wiring)] == []


def test_only_the_wiring_knows_the_stores_actor() -> None:
    assert modules_that_import("kschedd.actors.store") == {"daemon.py"}
