"""The plugin registry: in-tree plugins by name, and out-of-tree plugins from entry points or a file.

An out-of-tree plugin is any class with a `name`. A class without `from_args` is constructed without arguments. The
module is imported within a time limit.

Entry points in the group `kschedd.plugins` each name a plugin class. Errors: PluginLoadError, with the
file or entry point, the fault and its line.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import attrs

from kschedd.config.in_tree import IN_TREE, in_tree_class
from kschedd.config.plugin_info import PluginInfo
from kschedd.errors import KscheddError
from kschedd.framework.faults import BadAnswer, PluginError, plain_text
from kschedd.framework.guard import START_LIMIT_S, PluginGuard
from kschedd.framework.handle import Handle
from kschedd.framework.interface import extension_points, missing_methods, plugin_info
from kschedd.framework.look_alikes import look_alikes
from kschedd.framework.plugin_file import PluginFile, file_of
from kschedd.framework.status import fault_text
from kschedd.framework.validating_admission import fault_of_class, is_validating, validating_plugin
from kschedd.store.admission.chain import ValidatingPlugin

_ENTRY_POINT: Final = "entry point "


@attrs.define(eq=False)
class PluginLoadError(KscheddError):
    """The error for an out-of-tree plugin that cannot be used; `source` is its file or entry point."""

    source: str
    why: str

    def __str__(self) -> str:
        return f"{self.source}: {self.why}"


def name_taken(name: str, source: str, owner: str) -> PluginLoadError:
    return PluginLoadError(source, f"the name {name} belongs to a plugin from {owner}")


RunAsync = Callable[[Callable[..., Any], Sequence[Any], float], Any]
"""Runs a coroutine function with these arguments to its end, within a number of seconds. Raises TimeoutError."""


def no_async(method: Callable[..., Any], args: Sequence[Any], limit_s: float) -> Any:
    """Reject an async method; used by registries whose plugins bind no pods."""
    raise BadAnswer(f"{method.__name__} is async, which is not supported here")


@attrs.define(eq=False)
class Registry:
    """The registry of in-tree plugins and of added out-of-tree classes."""

    added: dict[str, type[Any]] = attrs.field(factory=dict)
    sources: dict[str, str] = attrs.field(factory=dict)  # name of an added plugin -> its file or entry point
    start_limit_s: float = START_LIMIT_S  # time limit in seconds for importing a module, or constructing a plugin
    run_async: RunAsync = no_async  # runs methods that are `async def`
    validating: dict[str, type[Any]] = attrs.field(factory=dict, kw_only=True)  # admission plugins, by name
    validating_sources: dict[str, str] = attrs.field(factory=dict, kw_only=True)

    def names(self) -> frozenset[str]:
        return frozenset(IN_TREE) | frozenset(self.added)

    def source_of(self, name: str) -> str | None:
        """Return the file or entry point of this plugin or admission plugin; None if no such plugin was added."""
        return self.sources.get(name) or self.validating_sources.get(name)

    def plugin_class(self, name: str) -> type[Any]:
        if name in self.added:
            return self.added[name]
        return in_tree_class(name)

    def catalogue(self) -> Mapping[str, PluginInfo]:
        """Return every added plugin, by name."""
        return {
            name: attrs.evolve(plugin_info(cls), guard=partial(PluginGuard(name, self.start_limit_s).call, "args_type"))
            for name, cls in self.added.items()
        }

    def make(self, name: str, args: Any, handle: Handle) -> Any:
        """Return an in-tree plugin ready for use. Only a `GuardedRegistry` also constructs out-of-tree plugins."""
        return self.plugin_class(name).from_args(args, handle)

    def construct(self, name: str, args: Any, handle: Any) -> Any:
        cls = self.added[name]
        return cls.from_args(args, handle) if hasattr(cls, "from_args") else cls()

    def cannot_make(self, name: str, fault: Exception) -> PluginLoadError:
        return PluginLoadError(
            self.sources.get(name, "plugin"),
            f"plugin {name} cannot be created: {fault_text(fault)}. Allowed: a class method from_args(args, handle) "
            f"or a constructor without arguments, that returns within {self.start_limit_s:g}s",
        )

    def add(self, cls: type[Any], source: str) -> None:
        name = getattr(cls, "name", None)
        if not isinstance(name, str) or not name:
            raise PluginLoadError(source, f"class {cls.__name__} has no `name`, which is the plugin's name in profiles")
        name = plain_text(name)
        if name in IN_TREE:
            raise PluginLoadError(source, f"the name {name} belongs to an in-tree plugin; choose another one")
        if {**self.added, **self.validating}.get(name, cls) is not cls:
            raise name_taken(name, source, self.source_of(name) or source)
        if missing := missing_methods(cls):
            raise PluginLoadError(source, f"class {cls.__name__} has {missing}; both are required")
        if is_validating(cls):
            self._add_validating(cls, name, source)
            return
        if not extension_points(cls):
            what = f"class {cls.__name__} has none of the methods by which a plugin takes part"
            there = look_alikes(cls)
            raise PluginLoadError(source, f"{what}, but {', '.join(there)}" if there else what)
        self.added[name] = cls
        self.sources[name] = source

    def _add_validating(self, cls: type[Any], name: str, source: str) -> None:
        if points := extension_points(cls):
            has = ", ".join(("validate", *sorted(points)))
            why = f"class {cls.__name__} has {has}: an admission plugin is a class of its own"
            raise PluginLoadError(source, why)
        if why := fault_of_class(cls, name):
            raise PluginLoadError(source, why)
        self.validating[name] = cls
        self.validating_sources[name] = source

    def validating_plugins(self) -> dict[str, ValidatingPlugin]:
        """Return the admission plugins. Plugins of installed packages are off by default. Raises PluginLoadError."""
        found = {}
        for name, cls in self.validating.items():
            source = self.validating_sources[name]
            on = not source.startswith(_ENTRY_POINT)
            try:
                found[name] = validating_plugin(name, cls, self.start_limit_s, on=on)
            except PluginError as fault:
                raise PluginLoadError(source, f"admission plugin {name} cannot be created: {fault.why}") from None
        return found

    def add_file(self, path: Path) -> list[str]:
        """Add every plugin class that a Python file defines; return their names."""
        try:
            is_there = path.is_file()
        except OSError as fault:  # for example a folder without read permission, or a name that is too long
            raise PluginLoadError(str(path), f"cannot be read: {fault.strerror}") from fault
        if not is_there:
            raise PluginLoadError(str(path), "no such file")
        if path.suffix != ".py":
            raise PluginLoadError(str(path), "is not a Python file; its name must end in .py")
        before = {*self.added, *self.validating}
        self._within_limit(str(path), lambda: self._add_file(PluginFile(str(path), path.read_bytes())))
        names = [name for name in (*self.added, *self.validating) if name not in before]
        if not names:
            raise PluginLoadError(
                str(path), "defines no plugin: a class with a `name` and an extension point's method, or `validate`"
            )
        return names

    def add_entry_points(self) -> None:
        for entry in entry_points(group="kschedd.plugins"):
            source = f"{_ENTRY_POINT}{entry.name}"
            self._within_limit(source, partial(self._add_entry, entry, source))

    def _add_entry(self, entry: EntryPoint, source: str) -> None:
        self.add(entry.load(), source)

    def _add_file(self, file: PluginFile) -> None:
        for cls in _plugin_classes(file.module()):
            self.add(cls, file.path)
            file_of[cls] = file

    def _within_limit(self, source: str, work: Callable[[], None]) -> None:
        """Import a module and inspect its classes within the time limit; both steps run plugin code."""

        def guarded() -> PluginLoadError | None:
            try:
                work()
            except PluginLoadError as wrong:
                return wrong
            return None

        try:
            wrong = PluginGuard("", self.start_limit_s).call("import", guarded, source=source)
        except PluginError as fault:
            raise PluginLoadError(source, f"cannot be imported: {fault.why}") from None
        if wrong is not None:
            raise wrong


def _plugin_classes(module: ModuleType) -> Iterator[type[Any]]:
    for _, cls in inspect.getmembers(module, inspect.isclass):
        if cls.__module__ == module.__name__ and isinstance(getattr(cls, "name", None), str):
            yield cls
