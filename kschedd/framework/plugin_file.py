"""PluginFile: a plugin's Python file as it was when it was read; PluginRecipe: what makes a plugin in a worker process.

The file's text is kept, so that the same code runs everywhere, even if the file has been changed since.
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
        """Run the file. Raises what it raises."""
        module = ModuleType(self.module_name)
        module.__file__ = self.path
        exec(compile(self.text, self.path, "exec"), module.__dict__)
        return module


file_of: WeakKeyDictionary[type, PluginFile] = WeakKeyDictionary()
"""The files of plugin classes that come from one."""


@attrs.frozen
class PluginRecipe:
    """What a worker process needs to make a plugin: its class, by a file or by a module, and its arguments."""

    name: str
    module: str
    qualname: str
    file: PluginFile | None  # None: the module can be imported
    args: Any  # as in a profile
    feature_gates: Mapping[str, bool]
    seed: int
