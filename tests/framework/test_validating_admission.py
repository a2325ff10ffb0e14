"""Tests of admission plugins in plugin files: rejections, faults, and switching them on and off."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kschedd.apiserver.codec.status import refusal_of
from kschedd.framework.registry import PluginLoadError, Registry
from kschedd.framework.validating_admission import validating_plugin
from kschedd.startup.options import DaemonOptions, admission_of, read_options
from kschedd.store.admission.chain import Admission, UnknownAdmissionPlugin
from kschedd.store.errors import AdmissionPluginFailed, ApiError, Forbidden
from kschedd.store.store import Store
from tests.store.manifests import Clock, pod

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugins" / "team_label.py"
PATIENT_S = 60.0


def store_with(validate: Callable[..., Any], limit_s: float = PATIENT_S, **attributes: Any) -> Store:
    cls = type("Mine", (), {"name": "Mine", "validate": staticmethod(validate), **attributes})
    plugin = validating_plugin("Mine", cls, PATIENT_S, limit_s, on=True)
    return Store(now=Clock(), admission=Admission(others={"Mine": plugin}))


def of_team(name: str, team: str) -> dict[str, Any]:
    raw = pod(name)
    return {**raw, "metadata": {**raw["metadata"], "labels": {"team": team}}}


def example_store() -> Store:
    options = DaemonOptions(plugin_files=(EXAMPLE,))
    return Store(now=Clock(), admission=admission_of(options, read_options(options)[1]))


def test_the_example_refuses_pods_without_a_team() -> None:
    store = example_store()
    with pytest.raises(Forbidden) as refused:
        store.create(pod("a"))
    assert str(refused.value) == (
        'pods "a" is forbidden: admission plugin "TeamLabel" denied the request: '
        "every pod must name its team in the label team"
    )
    assert store.count("Pod") == 0
    store.create(of_team("a", "x"))
    with pytest.raises(Forbidden, match="the label team may not change from x"):
        store.merge_patch("Pod", "default", "a", {"metadata": {"labels": {"team": "y"}}})
    store.delete("Pod", "default", "a", grace_period_s=0)
    assert store.count("Pod") == 0


def test_pods_that_are_alike_are_each_looked_at() -> None:
    requests: list[str] = []

    def validate(operation: str, new: Any, old: Any) -> str | None:
        requests.append(new["metadata"]["name"])
        return "not this one" if new["metadata"]["name"] == "c" else None

    store = store_with(validate, kinds=("Pod",))
    store.create(pod("a"))
    store.create(pod("b"))
    with pytest.raises(Forbidden, match="not this one"):
        store.create(pod("c"))
    assert requests == ["a", "b", "c"]


def test_it_is_asked_of_creates_updates_and_deletes_and_of_no_status() -> None:
    requests: list[tuple[Any, ...]] = []

    def validate(operation: str, new: Any, old: Any) -> None:
        requests.append((operation, new is None, old is None))

    store = store_with(validate, kinds=["ConfigMap", "Pod"])
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    store.create(pod("a"))
    store.patch_status("Pod", "default", "a", {"phase": "Running"})
    store.merge_patch("Pod", "default", "a", {"metadata": {"labels": {"x": "y"}}})
    store.delete("Pod", "default", "a", grace_period_s=0)
    assert requests == [("CREATE", False, True), ("UPDATE", False, False), ("DELETE", True, False)]


def test_without_kinds_it_is_asked_of_all_but_what_is_built_in_or_restored() -> None:
    store = store_with(lambda operation, new, old: ["no", "never"])
    assert store.count("Namespace") > 0
    with pytest.raises(Forbidden, match=r'namespaces "n" is forbidden: .* denied the request: no, never'):
        store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    store.create(pod("a"), restore=True)


def raises(fault: BaseException) -> Callable[..., Any]:
    def validate(operation: str, new: Any, old: Any) -> None:
        raise fault

    return validate


def changes(operation: str, new: Any, old: Any) -> None:
    new["metadata"]["labels"] = {}


class Evil(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("validate", "why"),
    [
        (raises(ValueError("boom")), "ValueError: boom"),
        (raises(SystemExit(3)), "SystemExit: 3"),
        (raises(KeyboardInterrupt()), "KeyboardInterrupt"),
        (changes, "TypeError"),
        (lambda operation: None, "TypeError"),
        (lambda *requests: False, "validate returned False; allowed are None, a text and a list of texts"),
        (lambda *requests: "", "validate returned ''"),
        (lambda *requests: ["no", 1], "validate returned ['no', 1]"),
        (lambda *requests: {"no": 1}, "validate returned {'no': 1}"),
    ],
)
def test_what_it_does_wrong_refuses_the_write_by_its_name_and_nothing_else(
    validate: Callable[..., Any], why: str
) -> None:
    store = store_with(validate, kinds=("Pod",))
    version = store.version
    with pytest.raises(AdmissionPluginFailed) as refused:
        store.create(pod("a"))
    begin = 'Internal error occurred: failed calling admission plugin "Mine": '
    assert str(refused.value).startswith(begin + why)
    shown = refusal_of(refused.value)
    assert (shown.code, shown.reason, shown.message) == (500, "InternalError", str(refused.value))
    assert (store.count("Pod"), store.version) == (0, version)
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})


def test_a_text_with_methods_of_its_own_is_a_text() -> None:
    with pytest.raises(Forbidden, match="denied the request: no"):
        store_with(lambda *requests: Evil("no"), kinds=("Pod",)).create(pod("a"))


def test_a_plugin_that_hangs_is_left_and_not_asked_again_until_it_is_back() -> None:
    go_on = threading.Event()

    def validate(operation: str, new: Any, old: Any) -> None:
        go_on.wait()

    store = store_with(validate, 0.05, kinds=("Pod",))
    answer = [""]
    try:
        # A call whose thread starts too late is skipped; repeat it until a call hangs.
        while "an earlier call has not returned yet" not in answer[-1]:
            with pytest.raises(AdmissionPluginFailed) as refused:
                store.create(pod("a"))
            answer.append(str(refused.value))
    finally:
        go_on.set()
    assert answer[1].endswith('admission plugin "Mine": validate did not return within 0.05s')
    assert len(answer) > 2
    assert store.count("Pod") == 0


def plugins_of(file: Path) -> object:
    registry = Registry()
    registry.add_file(file)
    return registry.validating_plugins()


def test_the_flags_switch_it() -> None:
    off = DaemonOptions(plugin_files=(EXAMPLE,), disable_admission=("TeamLabel",))
    store = Store(now=Clock(), admission=admission_of(off, read_options(off)[1]))
    assert store.create(pod("a")).name == "a"
    both = DaemonOptions(plugin_files=(EXAMPLE,), disable_admission=("TeamLabel",), enable_admission=("TeamLabel",))
    with pytest.raises(ApiError):
        Store(now=Clock(), admission=admission_of(both, read_options(both)[1])).create(pod("a"))
    typo = DaemonOptions(plugin_files=(EXAMPLE,), disable_admission=("TeamLable",))
    with pytest.raises(UnknownAdmissionPlugin, match=r'"TeamLable" does not exist; there are: .*, TeamLabel$'):
        admission_of(typo, read_options(typo)[1])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("class A:\n    name = 'Priority'\n    def validate(self, o, n, p): ...", "the name Priority belongs to an"),
        (
            "class A:\n    name = 'AlwaysDeny'\n    def validate(self, o, n, p): ...",
            "the name AlwaysDeny belongs to an",
        ),
        (
            "class A:\n    name = 'A'\n    kinds = 'Pod'\n    def validate(self, o, n, p): ...",
            "has kinds 'Pod'; allowed",
        ),
        (
            "class A:\n    name = 'A'\n    kinds = ('Pod', 7)\n    def validate(self, o, n, p): ...",
            "has kinds ('Pod', 7); allowed",
        ),
        (
            "class A:\n    name = 'A'\n    def validate(self, o, n, p): ...\n    def filter(self, s, p, n): ...",
            "class A has validate, filter: an admission plugin is a class of its own",
        ),
        (
            "class A:\n    name = 'A'\n    def __init__(self): 1 / 0\n    def validate(self, o, n, p): ...",
            "admission plugin A cannot be created: ZeroDivisionError",
        ),
    ],
)
def test_a_class_that_cannot_be_used_is_refused_at_the_start(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(PluginLoadError) as refused:
        plugins_of(file)
    assert why in str(refused.value)
