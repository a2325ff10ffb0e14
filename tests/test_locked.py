"""Tests that requirements.lock has every dependency of pyproject.toml with hashes, in a permitted version."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def test_every_dependency_is_locked_in_a_version_that_is_allowed_and_by_its_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = {canonicalize_name(name): version for name, version, _ in _LOCKED.findall(text)}
    assert len(locked) == len(re.findall(r"^[A-Za-z0-9]", text, re.MULTILINE)), "each is pinned, and has hashes"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    named = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(one for all_ in extras for one in all_),
    ]
    wanted = [requirement for text in named if (requirement := Requirement(text)).name != "kschedd"]
    wrong = [str(one) for one in wanted if not one.specifier.contains(locked.get(canonicalize_name(one.name), "0"))]
    assert not wrong
    assert len(wanted) > 20
