"""Which plugins there are: the in-tree ones by name, and those that come from entry points or from a file.

An in-tree plugin's module is imported when a profile first names it. A plugin from elsewhere is any class with a
`name`; without a `from_args` it is made with no arguments, or with its raw arguments if its constructor takes one.

Entry points: group `kschedd.plugins`, each naming such a class.
Errors: PluginLoadError says which file or entry point, and what is wrong with it.
"""

import importlib
import importlib.util
import inspect
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from kschedd.errors import KscheddError
from kschedd.framework.handle import Handle
from kschedd.framework.interface import extension_points

IN_TREE = {
    "SchedulingGates": "schedulinggates",
    "PrioritySort": "prioritysort",
    "NodeUnschedulable": "nodeunschedulable",
    "NodeName": "nodename",
    "TaintToleration": "tainttoleration",
    "NodeAffinity": "nodeaffinity",
    "NodePorts": "nodeports",
    "NodeResourcesFit": "noderesourcesfit",
    "VolumeRestrictions": "volumerestrictions",
    "NodeVolumeLimits": "nodevolumelimits",
    "VolumeBinding": "volumebinding",
    "VolumeZone": "volumezone",
    "PodTopologySpread": "podtopologyspread",
    "InterPodAffinity": "interpodaffinity",
    "DynamicResources": "dynamicresources",
    "DefaultPreemption": "defaultpreemption",
    "NodeResourcesBalancedAllocation": "noderesourcesbalancedallocation",
    "ImageLocality": "imagelocality",
    "DefaultBinder": "defaultbinder",
}


@attrs.define(eq=False)
class PluginLoadError(KscheddError):
    """A plugin from outside that cannot be used; `source` is its file or entry point."""

    source: str
    why: str

    def __str__(self) -> str:
        return f"{self.source}: {self.why}"


@attrs.define(eq=False)
class Registry:
    """In-tree plugins and the classes that were added."""

    added: dict[str, type[Any]] = attrs.field(factory=dict)

    def names(self) -> frozenset[str]:
        return frozenset(IN_TREE) | frozenset(self.added)

    def plugin_class(self, name: str) -> type[Any]:
        if name in self.added:
            return self.added[name]
        module = importlib.import_module(f"kschedd.plugins.{IN_TREE[name]}")
        found: type[Any] = getattr(module, name)
        return found

    def catalogue(self) -> Mapping[str, frozenset[str]]:
        """Extension points of every added plugin, by name."""
        return {name: extension_points(cls) for name, cls in self.added.items()}

    def make(self, name: str, args: Any, handle: Handle) -> Any:
        """A plugin ready for use; an added one that cannot be made raises PluginLoadError."""
        cls = self.plugin_class(name)
        if name not in self.added:
            return cls.from_args(args, handle)
        try:
            if hasattr(cls, "from_args"):
                return cls.from_args(args, handle)
            return cls()
        except Exception as failure:
            raise PluginLoadError(name, f"could not be made: {failure!r}") from failure

    def add(self, cls: type[Any], source: str) -> None:
        name = getattr(cls, "name", None)
        if not isinstance(name, str) or not name:
            raise PluginLoadError(source, f"class {cls.__name__} has no `name`, which is the plugin's name in profiles")
        if name in IN_TREE:
            raise PluginLoadError(source, f"the name {name} belongs to an in-tree plugin; choose another one")
        if not extension_points(cls):
            raise PluginLoadError(source, f"class {cls.__name__} has none of the methods by which a plugin takes part")
        self.added[name] = cls

    def add_file(self, path: Path) -> list[str]:
        """Add every plugin class that a Python file defines. Returns their names."""
        module = _import_file(path)
        before = set(self.added)
        for cls in _plugin_classes(module):
            self.add(cls, str(path))
        names = [name for name in self.added if name not in before]
        if not names:
            raise PluginLoadError(str(path), "defines no plugin: a class with a `name` and an extension point's method")
        return names

    def add_entry_points(self) -> None:
        for entry in entry_points(group="kschedd.plugins"):
            try:
                cls = entry.load()
            except (Exception, SystemExit) as failure:
                raise PluginLoadError(f"entry point {entry.name}", f"cannot be imported: {failure!r}") from failure
            self.add(cls, f"entry point {entry.name}")


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise PluginLoadError(str(path), "no such file")
    spec = importlib.util.spec_from_file_location(f"kschedd_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise PluginLoadError(str(path), "is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as failure:
        raise PluginLoadError(str(path), f"cannot be imported: {failure!r}") from failure
    return module


def _plugin_classes(module: ModuleType) -> Iterator[type[Any]]:
    for _, cls in inspect.getmembers(module, inspect.isclass):
        if cls.__module__ == module.__name__ and isinstance(getattr(cls, "name", None), str):
            yield cls
