"""Tests that the kit gives a plugin its arguments as a profile does: parsed from a mapping into its own type."""

from typing import ClassVar

import attrs
import pytest

from kschedd import node, pod
from kschedd.config.args import arg
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.plugin import CycleState, Handle, NodeInfo, Pod, Status, unschedulable
from kschedd.testing.judging import judge


@attrs.frozen
class LimitArgs:
    limit: int = arg(2, bounds=(1, 9))


@attrs.frozen
class Limit:
    """A plugin that accepts nodes with fewer pods than its argument."""

    name: ClassVar = "Limit"
    args_type: ClassVar = LimitArgs
    args: LimitArgs

    @classmethod
    def from_args(cls, args: LimitArgs, handle: Handle) -> "Limit":
        return cls(args)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        return None if len(node.pods) < self.args.limit else unschedulable("full")


@pytest.mark.parametrize(("args", "reason"), [(None, ""), ({"limit": 1}, "full")])
def test_arguments_are_of_the_plugins_own_type(args: dict[str, int] | None, reason: str) -> None:
    answer = judge(Limit, pod("b"), [node("n")], pods=[pod("a", node_name="n")], args=args)
    assert answer["n"].reason == reason


def test_arguments_that_its_type_refuses_are_a_fault() -> None:
    with pytest.raises(ConfigErrors, match="limit: 0: out of range"):
        judge(Limit, pod("b"), [node("n")], args={"limit": 0})
