"""docs/LIBRARY.md and examples/library: each program runs, and its assertions hold."""

import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "LIBRARY.md"
PROGRAMS = sorted((ROOT / "examples" / "library").glob("*.py"))
NEEDS = {"learn_packing": "gymnasium", "placements": "pandas"}


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_the_blocks_of_the_page_run_one_after_the_other() -> None:
    pytest.importorskip("gymnasium", reason="the page uses the extra gym, which is not installed")
    names: dict[str, object] = {}
    found = blocks()
    assert len(found) > 7
    for block in found:
        exec(compile(block, str(PAGE), "exec"), names)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
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
