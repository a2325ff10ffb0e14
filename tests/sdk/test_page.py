"""Tests that each program of docs/LIBRARY.md and examples/library runs, and that its assertions hold."""

import inspect
import re
import runpy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import kschedd
from kschedd import Records
from tests.corpus.interface import interface
from tests.full_run import everyday

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "LIBRARY.md"

PROGRAMS = sorted((ROOT / "examples" / "library").glob("*.py"))
LONG = ("learn_packing",)  # it trains for 10 s
NEEDS = {"learn_packing": "gymnasium", "placements": "pandas"}

PACKING = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}]
"""


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_blocks_of_the_page_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gymnasium", reason="the page uses the extra gym, which is not installed")
    (tmp_path / "packing.yaml").write_text(PACKING)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    found = blocks()
    assert len(found) > 7
    for block in found:
        exec(compile(block, str(PAGE), "exec"), names)


@pytest.mark.parametrize("program", everyday(PROGRAMS, lambda path: path.stem not in LONG), ids=lambda path: path.stem)
def test_a_program_runs(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needed = NEEDS.get(program.stem)
    if needed is not None and find_spec(needed) is None:
        pytest.skip(f"{program.name} needs {needed}, which is not installed")
    names = runpy.run_path(str(program))
    out = capsys.readouterr().out
    if program.stem == "learn_packing":
        placed = {line.split()[0]: float(line.split()[1]) for line in out.splitlines()[1:]}
        assert placed["learned"] > placed["random"]
    elif program.stem == "zone_loss":
        assert re.search(r"^\d+ pods pending: ", out, re.MULTILINE)
        assert out.endswith("0 pods pending in the cluster itself\n")
    else:
        assert out or any(name.startswith("test_") for name in names)


def test_the_page_lists_every_program() -> None:
    assert set(re.findall(r"examples/library/(\w+\.py)", PAGE.read_text(encoding="utf-8"))) == {
        program.name for program in PROGRAMS
    }


def test_the_page_lists_the_columns_of_every_table() -> None:
    """Check that each row of the page's table names a record of the library, and its columns."""
    rows = re.findall(r"^\| `[^|]*` \| `(\w+)` \| (`.*`) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    there = [found(name) for name in described()]
    there += [each for module in there if inspect.ismodule(module) for each in vars(module).values()]
    kinds = {kind.__name__: kind for kind in there if inspect.isclass(kind)}
    for name, columns in rows:
        assert tuple(re.findall(r"`(\w+)`", columns)) == Records(kinds[name]).columns, name
    tables = set(re.findall(r"Records\[([A-Z]\w+)\]", interface())) - {"R"}
    assert tables <= {name for name, _ in rows}


def described() -> list[str]:
    """Return the full names that the reference documents."""
    return re.findall(r"^::: (\S+)$", (ROOT / "docs" / "API.md").read_text(encoding="utf-8"), re.MULTILINE)


def found(name: str) -> object:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(import_module(module), last)


def test_the_reference_describes_every_public_name_and_the_types_of_its_answers() -> None:
    pytest.importorskip("gymnasium", reason="the reference has the extra gym, which is not installed")
    there = [found(name) for name in described()]
    there += [each for module in there if inspect.ismodule(module) for each in vars(module).values() if callable(each)]
    assert [name for name in kschedd.__all__ if getattr(kschedd, name) not in there] == []
    answers: set[str] = set()
    for _, member in inspect.getmembers(
        kschedd.Cluster, lambda each: inspect.isfunction(each) or isinstance(each, property)
    ):
        function = member.fget if isinstance(member, property) else member
        if not function.__name__.startswith("_"):
            returned = inspect.signature(function).return_annotation
            answers.update(re.findall(r"\b[A-Z]\w+", inspect.formatannotation(returned)))
    names = {getattr(each, "__name__", "") for each in there}
    assert answers - names - {"Axes", "Raw", "Sequence", "Mapping", "None"} <= {"Any"}
