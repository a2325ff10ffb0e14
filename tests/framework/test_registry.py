"""Tests of the registry of plugins: which classes it accepts, from where, and what it reports of the others."""

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework import registry as module
from kschedd.framework.faults import BadAnswer
from kschedd.framework.handle import Handle
from kschedd.framework.registry import PluginLoadError, Registry

PLUGIN = """
class Cheap:
    name = "Cheap"

    def score(self, state, pod, node):
        return 1

class Helper:
    name = "Helper"  # imported by nobody, and without a method by which a plugin takes part
"""


class Cheap:
    name = "Cheap"

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1


class Dear(Cheap):
    name = "Dear"

    def __init__(self, args: Any = None) -> None:
        self.args = args

    @classmethod
    def from_args(cls, args: Any, handle: Any) -> "Dear":
        return cls(args)


class Validates:
    name = "Labels"

    def validate(self, request: Any) -> None: ...


def file(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(work: Any, *args: Any) -> str:
    with pytest.raises(PluginLoadError) as refused:
        work(*args)
    return str(refused.value)


def test_an_added_plugin_has_a_source_and_is_constructed_with_its_arguments_if_it_takes_any() -> None:
    registry = Registry()
    registry.add(Cheap, "cheap.py")
    registry.add(Dear, "dear.py")
    assert {"Cheap", "Dear", "NodeName"} <= registry.names()
    assert (registry.source_of("Cheap"), registry.source_of("NodeName")) == ("cheap.py", None)
    assert registry.plugin_class("Cheap") is Cheap
    assert set(registry.catalogue()) == {"Cheap", "Dear"}
    assert isinstance(registry.construct("Cheap", {"a": 1}, None), Cheap)
    assert registry.construct("Dear", {"a": 1}, None).args == {"a": 1}
    assert registry.make("NodeName", None, Handle(SchedulerCache())).name == "NodeName"


def test_the_same_class_may_be_added_twice_but_no_other_class_of_its_name() -> None:
    registry = Registry()
    registry.add(Cheap, "a.py")
    registry.add(Cheap, "a.py")
    other = type("Other", (Cheap,), {})
    assert refusal(registry.add, other, "b.py") == "b.py: the name Cheap belongs to a plugin from a.py"
    registry.add(Validates, "c.py")
    assert registry.source_of("Labels") == "c.py"
    scores = type("Scores", (Cheap,), {"name": "Labels"})
    assert refusal(registry.add, scores, "d.py") == "d.py: the name Labels belongs to a plugin from c.py"


@pytest.mark.parametrize(
    ("names", "why"),
    [
        pytest.param({}, "class X has no `name`, which is the plugin's name in profiles", id="no-name"),
        pytest.param({"name": ""}, "class X has no `name`, which is the plugin's name in profiles", id="empty-name"),
        pytest.param({"name": 1}, "class X has no `name`, which is the plugin's name in profiles", id="name-of-a-type"),
        pytest.param(
            {"name": "NodeName"}, "the name NodeName belongs to an in-tree plugin; choose another one", id="in-tree"
        ),
        pytest.param(
            {"name": "X"}, "class X has none of the methods by which a plugin takes part", id="without-methods"
        ),
        pytest.param(
            {"name": "X", "fliter": print},
            "class X has none of the methods by which a plugin takes part, but fliter (filter?)",
            id="a-misspelled-method",
        ),
        pytest.param(
            {"name": "X", "validate": print, "score": print},
            "class X has validate, score: an admission plugin is a class of its own",
            id="two-kinds-of-plugin",
        ),
    ],
)
def test_a_class_that_is_no_plugin_is_refused(names: dict[str, Any], why: str) -> None:
    assert refusal(Registry().add, type("X", (), names), "x.py") == f"x.py: {why}"


def test_a_file_adds_the_plugins_that_it_defines(tmp_path: Path) -> None:
    registry, text = Registry(), PLUGIN.partition("class Helper")[0]
    path = file(tmp_path, f"from json import JSONDecoder\n{text}    place = __file__\n\nclass Nameless: ...\n")
    assert registry.add_file(path) == ["Cheap"]
    assert registry.source_of("Cheap") == str(path)
    cheap: Any = registry.plugin_class("Cheap")
    assert (cheap.__module__, cheap.place) == ("kschedd_plugin_mine", str(path))
    admission = file(tmp_path, "class V:\n    name = 'V'\n    def validate(self, request): ...\n", "admission.py")
    assert registry.add_file(admission) == ["V"]
    assert (list(registry.added), list(registry.validating)) == (["Cheap"], ["V"])


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        pytest.param("mine.txt", PLUGIN, "is not a Python file; its name must end in .py", id="another-suffix"),
        pytest.param("mine.py", PLUGIN, "class Helper has none of the methods by which a plugin", id="no-plugin"),
        pytest.param("mine.py", "", "defines no plugin: a class with a `name` and an extension point's", id="empty"),
        pytest.param("mine.py", "1 / 0", "cannot be imported: ZeroDivisionError: division by zero", id="fails"),
    ],
)
def test_a_file_without_a_usable_plugin_is_refused(tmp_path: Path, name: str, text: str, why: str) -> None:
    path = file(tmp_path, text, name)
    assert refusal(Registry().add_file, path).startswith(f"{path}: {why}")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal(Registry().add_file, tmp_path / "none.py") == f"{tmp_path / 'none.py'}: no such file"
    assert refusal(Registry().add_file, tmp_path / ("x" * 300)).endswith(": cannot be read: File name too long")


def test_admission_plugins_of_packages_are_off_until_they_are_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("labels", f"{__name__}:Validates", "kschedd.plugins")
    monkeypatch.setattr(module, "entry_points", lambda group: [entry] if group == entry.group else [])
    of_package, of_file = Registry(), Registry()
    of_package.add_entry_points()
    of_file.add(Validates, "labels.py")
    assert of_package.source_of("Labels") == "entry point labels"
    [installed], [given] = of_package.validating_plugins().values(), of_file.validating_plugins().values()
    assert (installed.on, given.on) == (False, True)


def test_an_admission_plugin_that_cannot_be_created_is_refused() -> None:
    registry = Registry()
    registry.add(type("V", (Validates,), {"name": "V", "__init__": lambda self: 1 / 0}), "v.py")
    assert refusal(registry.validating_plugins).startswith(
        "v.py: admission plugin V cannot be created: ZeroDivisionError: division by zero"
    )


def test_a_registry_whose_plugins_bind_no_pods_runs_no_coroutine() -> None:
    async def bind() -> None: ...

    with pytest.raises(BadAnswer, match=r"^bind is async, which is not supported here$"):
        Registry().run_async(bind, (), 1.0)


def test_a_plugin_that_cannot_be_created_is_named_with_its_source() -> None:
    registry = Registry(start_limit_s=2.0)
    registry.add(Cheap, "cheap.py")
    found = str(registry.cannot_make("Cheap", ValueError("boom")))
    assert found.startswith("cheap.py: plugin Cheap cannot be created: ValueError: boom. Allowed: a class method")
    assert found.endswith("that returns within 2s")
    assert str(registry.cannot_make("Other", ValueError("boom"))).startswith("plugin: plugin Other cannot be created")
