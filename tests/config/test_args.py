"""Tests that arguments declared as an attrs class are parsed by their types, for in-tree and out-of-tree plugins."""

import json
from typing import Any, ClassVar, Literal

import attrs
import pytest

from kschedd.config.args import ArgsContext, arg, duration_s, written
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import load_config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import ConfigFields
from kschedd.framework.registry import Registry


@attrs.frozen
class Rack:
    name: str = arg(needed=True)
    height: int = arg(42, bounds=(1, 60))


@attrs.frozen
class PickyArgs:
    limit: int = arg(10, bounds=(1, 100), name="atMost")
    mode: Literal["Strict", "Loose"] = "Strict"
    share: float = 0.5
    quiet: bool = False
    node_labels: tuple[str, ...] = ()
    racks: tuple[Rack, ...] = ()
    wait_s: float = arg(1.0, name="wait", read=duration_s)
    note: str | None = None
    even: int = attrs.field(default=2)

    @even.validator
    def _is_even(self, attribute: Any, value: int) -> None:
        if value % 2:
            raise ValueError("odd")

    @classmethod
    def check(cls, fields: ConfigFields, context: ArgsContext) -> None:
        if fields.boolean("quiet", False) and fields.get("note") is not None:
            fields.place.reading.report(fields.path("note"), None, "contradicts quiet")


class Picky:
    name: ClassVar = "Picky"
    args_type: ClassVar = PickyArgs

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 0


REGISTRY = Registry({"Picky": Picky})
HEAD = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Picky}]}}
"""


def args_of(args: str) -> Any:
    text = f"{HEAD}  pluginConfig:\n  - name: Picky\n    args: {args}\n"
    return load_config(text, "f", catalogue={**IN_TREE, **REGISTRY.catalogue()}).profiles[0].args("Picky")


def test_without_arguments_the_class_says_the_defaults() -> None:
    assert (
        load_config(HEAD, "f", catalogue={**IN_TREE, **REGISTRY.catalogue()}).profiles[0].args("Picky") == PickyArgs()
    )


def test_each_field_is_read_by_its_type() -> None:
    lists = "nodeLabels: [a, b], racks: [{name: r, height: 2}]"
    read = args_of(f"{{atMost: 3, mode: Loose, share: 1, quiet: true, {lists}, wait: 1m30s}}")
    assert read == PickyArgs(3, "Loose", 1.0, True, ("a", "b"), (Rack("r", 2),), 90.0)
    assert args_of(json.dumps(written(read))) == read


@attrs.frozen
class FaultyArgs:
    limit: int = 1

    @classmethod
    def check(cls, fields: ConfigFields, context: ArgsContext) -> None:
        raise SystemExit(3)


class Faulty(Picky):
    name: ClassVar = "Faulty"
    args_type: ClassVar = FaultyArgs


@attrs.frozen
class NeverMadeArgs:
    @classmethod
    def defaults(cls, context: ArgsContext, given: Any) -> "NeverMadeArgs":
        raise KeyError("none")


class NeverMade(Picky):
    name: ClassVar = "NeverMade"
    args_type: ClassVar = NeverMadeArgs


@pytest.mark.parametrize(
    ("cls", "config", "refusal"),
    [
        (Faulty, "  pluginConfig: [{name: Faulty, args: {limit: 2}}]\n", "args: the plugin cannot read it: "),
        (NeverMade, "", "NeverMade: its default arguments cannot be made: "),
    ],
)
def test_code_of_an_arguments_class_that_raises_ends_in_a_fault(cls: type[Any], config: str, refusal: str) -> None:
    catalogue = {**IN_TREE, **Registry({cls.name: cls}).catalogue()}
    with pytest.raises(ConfigErrors) as refused:
        load_config(HEAD.replace("Picky", cls.name) + config, "f", catalogue=catalogue)
    [error] = refused.value.errors
    assert refusal in f"{error.path}: {error.why}"


@pytest.mark.parametrize(
    ("args", "refusal"),
    [
        ("{atmost: 3}", 'atmost: no such field; did you mean "atMost"?'),
        ("{atMost: 0}", "atMost: out of range"),
        ("{atMost: many}", "atMost: must be a whole number, not text"),
        ("{mode: Strikt}", 'mode: not one of the values; did you mean "Strict"?'),
        ("{nodeLabels: [1]}", "nodeLabels[0]: must be text, not a whole number"),
        ("{racks: [{height: 1}]}", "racks[0].name: required, but missing"),
        ("{quiet: true, note: x}", "note: contradicts quiet"),
        ("{even: 3}", "PickyArgs refuses it: odd"),
        ("[]", "must be a mapping, not a list"),
    ],
)
def test_a_fault_has_its_path_and_line(args: str, refusal: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        args_of(args)
    error = refused.value.errors[0]
    where = f"{error.path}: {error.why}".removeprefix("$.profiles[0].pluginConfig[0].args")
    assert where.lstrip(".: ").startswith(refusal)
    assert error.line == 7
