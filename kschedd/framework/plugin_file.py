"""PluginFile: the text of a plugin's Python file. PluginRecipe: the data to create a plugin in a worker process.

The text is stored, so that the same code runs everywhere, even if the file changes later.
"""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import attrs


@attrs.frozen
class PluginFile:
    path: str
    text: bytes

    @property
    def module_name(self) -> str:
        return f"kschedd_plugin_{Path(self.path).stem}"

    def module(self) -> ModuleType:
        """Run the file and return its module. Raises any exception of the file's code."""
        module = ModuleType(self.module_name)
        module.__file__ = self.path
        exec(compile(self.text, self.path, "exec"), module.__dict__)
        return module


file_of: WeakKeyDictionary[type, PluginFile] = WeakKeyDictionary()
"""The files of plugin classes that come from a file."""


@attrs.frozen
class PluginRecipe:
    """The data from which a worker process creates a plugin: its arguments, and its class in a file or module."""

    name: str
    module: str
    qualname: str
    file: PluginFile | None  # None if the plugin's module can be imported
    args: Any  # in the form of a profile
    feature_gates: Mapping[str, bool]
    seed: int
