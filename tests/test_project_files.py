"""Tests of the files for contributors: they name files that exist, and agree with the package's data."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def test_good_first_issues_name_existing_files() -> None:
    page = (ROOT / "docs" / "GOOD-FIRST-ISSUES.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for task, *_, files in rows:
        paths = re.findall(r"`([^`]+)`", files)
        assert paths, task
        assert [path for path in paths if not (ROOT / path).exists()] == [], task


def test_the_citation_has_the_version_and_license_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert citation["repository-code"] == project["urls"]["Repository"]


@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "config.yml"], ids=lambda form: form.name)
def test_issue_forms_ask_for_text(form: Path) -> None:
    content = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert content["name"]
    assert content["description"]
    ids = [field["id"] for field in content["body"]]
    assert len(ids) == len(set(ids))
    for field in content["body"]:
        assert field["type"] in ("input", "textarea")
        assert field["attributes"]["label"]
    assert any(field.get("validations", {}).get("required") for field in content["body"])


def test_the_bug_form_asks_for_a_redacted_report() -> None:
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml").read_text(encoding="utf-8")
    assert "kschedd report incident.html --redact" in text
