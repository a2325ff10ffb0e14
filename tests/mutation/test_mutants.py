"""Tests of mutants of a module, and of trials in a small tree."""

from pathlib import Path

import pytest

from tests.mutation import trial
from tests.mutation.argued import ARGUED, why_argued
from tests.mutation.mutants import chosen, mutants
from tests.mutation.results import Result, Results, table
from tests.mutation.trial import ROOT, TESTED_BY, AlreadyFailing, copied, files_testing

_MODULE = '''"""Docstring with 1 number."""

def fits(wanted: int, free: int = 3) -> bool:
    """Return 1."""
    if wanted <= free and not free == 7:
        seen.append((wanted, free))
    return wanted * 2 < free
'''


def _faults(text: str) -> list[tuple[int, str, str]]:
    return [(mutant.line, mutant.before, mutant.after) for mutant in mutants(text)]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        pytest.param("a <= b", [("a <= b", "(a < b)")], id="comparison"),
        pytest.param(
            "a in b is c", [("a in b is c", "(a in b is not c)"), ("a in b is c", "(a not in b is c)")], id="two"
        ),
        pytest.param("a and b", [("a and b", "(a or b)"), ("a and b", "(a)"), ("a and b", "(b)")], id="condition"),
        pytest.param("not a", [("not a", "(a)")], id="negation"),
        pytest.param(
            "a if b else c", [("a if b else c", "(a)"), ("a if b else c", "(c)"), ("b", "(not b)")], id="either"
        ),
        pytest.param("x = 1", [("1", "2")], id="number"),
        pytest.param("Key = tuple[str, int]", [], id="type"),
        pytest.param("Call = Callable[[str, int], None]", [], id="type-of-a-function"),
        pytest.param("__all__ = ('a', 'b')", [], id="names"),
        pytest.param("x = True", [("True", "False")], id="boolean"),
        pytest.param("x = a + b", [("a + b", "(a - b)")], id="operator"),
        pytest.param("min(a)", [("min", "max"), ("min(a)", "pass")], id="function"),
        pytest.param("a.b = c", [("a.b = c", "pass")], id="state"),
        pytest.param("x = a, b", [("a,", ""), (", b", "")], id="element"),
        pytest.param("x = zip(*a, *b)", [("*a,", ""), (", *b", "")], id="starred-argument"),
        pytest.param("for x in a:\n    break", [("break", "pass")], id="statement"),
        pytest.param("x = [a for a in b if c]", [("c", "True")], id="filter"),
        pytest.param("x: Literal[1]", [], id="annotation"),
        pytest.param("x = field(init=False)", [], id="generated-method"),
        pytest.param("x = zip(a, strict=True)", [], id="check"),
        pytest.param("def f():\n    return []", [], id="nothing"),
        pytest.param("def f():\n    return [a]", [("return [a]", "return None")], id="result"),
        pytest.param("assert x == 1", [], id="assertion"),
        pytest.param("f'{x + 1}'", [], id="f-string"),
        pytest.param("'1'", [], id="docstring"),
    ],
)
def test_each_kind_of_fault(text: str, faults: list[tuple[str, str]]) -> None:
    assert sorted((before, after) for _, before, after in _faults(text)) == sorted(faults)


def test_a_mutant_differs_in_one_place_and_keeps_the_lines() -> None:
    lines = _MODULE.splitlines()
    found = mutants(_MODULE)
    assert len(found) == len(set(found)) > 8
    for mutant in found:
        changed = [
            number for number, line in enumerate(mutant.text(_MODULE).splitlines(), 1) if line != lines[number - 1]
        ]
        assert changed == [mutant.line]


def test_text_beyond_ascii_moves_no_fault() -> None:
    [mutant] = mutants("x = 'ä' < b\n")
    assert mutant.text("x = 'ä' < b\n") == "x = ('ä' <= b)\n"


def test_the_seed_draws_and_every_line_comes_first() -> None:
    found = mutants(_MODULE)
    lines = {mutant.line for mutant in found}
    drawn = [chosen(found, len(lines), seed) for seed in range(5)]
    assert all({mutant.line for mutant in each} == lines for each in drawn)
    assert len({tuple(each) for each in drawn}) > 1
    assert chosen(found, 4, 3) == chosen(found, 4, 3)
    assert chosen(found, 1000, 1) == found


def test_each_argued_fault_is_a_fault_of_its_module() -> None:
    for module, faults in ARGUED.items():
        text = (ROOT / "kschedd" / f"{module}.py").read_text(encoding="utf-8")
        found = [mutant for mutant in mutants(text) if why_argued(f"kschedd/{module}.py", text, mutant)]
        assert {str(mutant) for mutant in found} == {fault for _, fault in faults}, module


def test_the_named_test_files_exist_and_so_do_their_modules() -> None:
    for module, names in TESTED_BY.items():
        assert (ROOT / "kschedd" / f"{module}.py").is_file()
        assert all((ROOT / name).is_file() for name in files_testing(f"kschedd/{module}.py")), names


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "kschedd").mkdir()
    (tmp_path / "tests" / "sub").mkdir(parents=True)
    (tmp_path / "kschedd" / "__init__.py").touch()
    (tmp_path / "kschedd" / "sums.py").write_text("def double(n):\n    return n + n\n\nLIMIT = 7\n")
    (tmp_path / "tests" / "test_sums.py").write_text(
        "from kschedd.sums import double\n\ndef test_double():\n    assert double(2) == 4\n"
    )
    return tmp_path


@pytest.mark.full
def test_a_trial_tells_a_noticed_fault_from_an_unnoticed_one_and_leaves_the_tree_alone(tree: Path) -> None:
    before = {file: file.read_bytes() for file in tree.rglob("*") if file.is_file()}
    _, sums, limit = mutants((tree / "kschedd" / "sums.py").read_text())
    assert (sums.after, limit.after) == ("(n - n)", "8")
    with copied("kschedd/sums.py", ["tests/test_sums.py"], tree) as copy:
        assert copy.root.is_dir()
        assert copy.seconds_without_fault(60) > 0
        assert copy.notices(sums, 1)
        assert not copy.notices(limit, 1)
        assert copy.notices(sums, 1), "the next trial has one fault again"
    assert not copy.root.exists()
    assert {file: file.read_bytes() for file in tree.rglob("*") if file.is_file()} == before


@pytest.mark.full
def test_tests_that_do_not_end_detect_a_fault(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_SHORTEST_S", 1)
    sums = tree / "kschedd" / "sums.py"
    sums.write_text("ENDS = True\n\ndef double(n):\n    while not ENDS:\n        pass\n    return 2 * n\n")
    [endless] = [each for each in mutants(sums.read_text()) if each.before == "True"]
    with copied("kschedd/sums.py", ["tests/test_sums.py"], tree) as copy:
        assert copy.seconds_without_fault(60) > 0
        assert copy.notices(endless, 0)


def test_tests_that_fail_anyway_say_nothing_about_faults(tree: Path) -> None:
    (tree / "tests" / "test_sums.py").write_text("def test_double():\n    assert False\n")
    with (
        copied("kschedd/sums.py", ["tests/test_sums.py"], tree) as copy,
        pytest.raises(AlreadyFailing, match=r"tests/test_sums\.py fails without any fault: 1 failed"),
    ):
        copy.seconds_without_fault(60)


def test_a_module_is_tested_by_the_file_of_its_name(tree: Path) -> None:
    assert files_testing("kschedd/sums.py", tree) == ["tests/test_sums.py"]
    (tree / "tests" / "sub" / "test_deep.py").write_text("")
    assert files_testing("kschedd/sub/deep.py", tree) == ["tests/sub/test_deep.py"]
    assert files_testing("kschedd/sub/below/deep.py", tree) == ["tests/sub/test_deep.py"]
    assert files_testing("kschedd/other/deep.py", tree) == []
    assert files_testing("kschedd/none.py", tree) == []


def test_a_module_without_a_file_of_its_own_is_tested_by_the_files_that_import_it_or_by_its_room(tree: Path) -> None:
    for name in ("test_one.py", "test_two.py"):
        (tree / "tests" / "sub" / name).touch()
    assert files_testing("kschedd/sub/shared.py", tree) == ["tests/sub/test_one.py", "tests/sub/test_two.py"]
    (tree / "tests" / "sub" / "test_two.py").write_text("from kschedd.sub.shared import each\n")
    assert files_testing("kschedd/sub/shared.py", tree) == ["tests/sub/test_two.py"]


def test_a_module_is_tested_by_the_file_of_its_folder_and_name(tree: Path) -> None:
    for name in ("test_log_writer.py", "test_writer.py"):
        (tree / "tests" / "sub" / name).touch()
    assert files_testing("kschedd/log/writer.py", tree) == ["tests/sub/test_log_writer.py"]
    assert files_testing("kschedd/sub/live/writer.py", tree) == ["tests/sub/test_writer.py"]
    assert files_testing("kschedd/live/reader.py", tree) == []


def test_a_stored_result_is_used_until_the_module_or_its_mutants_change(tmp_path: Path) -> None:
    file, module = tmp_path / "results", "kschedd/queue/backoff.py"
    found = mutants((ROOT / module).read_text(encoding="utf-8"))
    drawn, undetected = found[:20], [found[3], found[19]]
    assert Results(file).of(module, [], drawn) is None
    Results(file).add(module, [], drawn, undetected)
    assert Results(file).of(module, [], drawn) == undetected
    assert Results(file).of(module, [], found[:19]) is None
    assert Results(file).of(module, [module], drawn) is None
    assert Results(file).of("kschedd/queue/entry.py", [], drawn) is None
    Results(None).add(module, [], drawn, undetected)
    assert Results(None).of(module, [], drawn) is None


def test_the_table_has_a_row_for_each_package_and_names_the_weak_modules() -> None:
    of_modules = [
        Result("kschedd/queue/entry.py", 11, ["argued"], ["survived"]),
        Result("kschedd/queue/times.py", 0, [], []),
        Result("kschedd/store/journal/head.py", 20, [], ["survived"] * 3),
    ]
    assert table(of_modules).splitlines() == [
        "| package | modules | mutants | detected | argued | survived | score |",
        "|---|--:|--:|--:|--:|--:|--:|",
        "| queue | 2 | 11 | 9 | 1 | 1 | 90% |",
        "| store/journal | 1 | 20 | 17 | 0 | 3 | 85% |",
        "| all | 3 | 31 | 26 | 1 | 4 | 87% |",
        "",
        "modules under 90%: kschedd/store/journal/head.py: 85%",
    ]
