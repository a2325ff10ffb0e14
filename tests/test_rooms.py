"""Tests that the pages about the rooms name all of them, in the order in which they may import each other."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^\| (?P<row>\d+) \| (?P<rooms>[^|]*) \|", re.MULTILINE)
NAME = re.compile(r"`([^`]+)`")


def section(page: str, heading: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def layers() -> list[set[str]]:
    """Return the layers that `lint-imports` checks, the lowest first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {contract["id"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}
    return [set(re.findall(r"\w+", layer)) for layer in reversed(contracts["rooms"]["layers"])]


def test_the_rows_of_the_architecture_are_the_layers_that_are_checked() -> None:
    rows: dict[int, set[str]] = {}
    for found in ROW.finditer(section("ARCHITECTURE.md", "Rooms")):
        rows.setdefault(int(found["row"]), set()).update(NAME.findall(found["rooms"]))
    values, errors, *above = layers()
    above[0] |= values | errors  # which the page names in the same row
    assert rows == dict(enumerate(above))


def test_the_architecture_names_files_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = {name for name in NAME.findall(text) if re.fullmatch(r"[\w/]+/\w+\.(py|md)", name)}
    assert len(named) > 60
    assert sorted(name for name in named if not any((ROOT / root / name).is_file() for root in ("kschedd", ""))) == []


def test_the_architecture_names_functions_that_exist() -> None:
    paragraph = (
        section("ARCHITECTURE.md", "The path of a pod, in ten steps")
        .partition("The functions for a pod")[2]
        .partition("\n\n")[0]
    )
    named = NAME.findall(paragraph)
    assert len(named) > 15
    code = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "kschedd").rglob("*.py"))
    methods = {name.partition(".")[::2] for name in named if "." in name}
    assert sorted(cls for cls, _ in methods if f"class {cls}" not in code) == []
    assert sorted(name for name in named if f"def {name.rpartition('.')[2]}(" not in code) == []


def test_the_channels_of_the_architecture_are_those_of_the_wiring() -> None:
    wired = re.findall(r"open_memory_channel\[(.*)\]\((\w+)\)", (ROOT / "kschedd/daemon.py").read_text("utf-8"))
    rows = re.findall(r"^\| [\w ,]+ \| `(.*)` \| `?(\w+)`? \|", section("ARCHITECTURE.md", "Actors and channels"), re.M)
    reported = {(carried.replace("\\|", "|"), size) for carried, size in rows}
    assert reported == set(wired) - {("Sequence[SchedulerEvent]", "0")}  # which only a real cluster has


def test_the_architecture_names_every_package() -> None:
    named = set(NAME.findall(section("ARCHITECTURE.md", "Rooms")))
    packages = {file.parent.name for file in (ROOT / "kschedd").glob("*/__init__.py")}
    assert packages - named == set()


def test_the_readme_is_short_and_links_every_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    pages = {str(file.relative_to(ROOT)) for folder in (ROOT, ROOT / "docs") for file in folder.glob("*.md")}
    assert pages - {"README.md"} - set(re.findall(r"\]\(([\w/-]+\.md)\)", text)) == set()


def test_the_site_has_every_page_in_its_navigation() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = {str(file.relative_to(ROOT)) for folder in (ROOT, ROOT / "docs") for file in folder.glob("*.md")}
    assert pages - set(re.findall(r"[\w/-]+\.md", str(navigation))) == set()
