"""The example plugins, as tests import them."""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "examples" / "plugins"


@cache
def module(file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{file.removesuffix('.py')}", FOLDER / file)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # attrs looks a class's module up
    spec.loader.exec_module(found)
    return found


def definitions() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions of the objects that the plugins read."""
    return list(yaml.safe_load_all((FOLDER / "crds.yaml").read_text(encoding="utf-8")))
