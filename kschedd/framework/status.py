"""What a plugin says of a pod or a node.

Source: Kubernetes v1.34, kube-scheduler/framework/interface.go (Code, Status).
"""

import traceback
from enum import IntEnum
from pathlib import PurePath

import attrs


class Code(IntEnum):
    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    @property
    def label(self) -> str:
        """The name as Kubernetes writes it: `UnschedulableAndUnresolvable`."""
        return _LABELS[self]


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}


@attrs.frozen
class Status:
    """A verdict with its reasons. No status at all (None) means success everywhere."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def rejected(self) -> bool:
        """Whether the pod may be tried again when the cluster has changed."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        """The same status, said by `plugin` unless it already names one."""
        return self if self.plugin else attrs.evolve(self, plugin=plugin)


SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    return Status(Code.ERROR, reasons)


def fault_text(fault: BaseException) -> str:
    """An exception of a plugin in one line, with the place that raised it: `ValueError: no idea (my_plugin.py:12)`."""
    text = f"{type(fault).__name__}: {fault}"
    frames = traceback.extract_tb(fault.__traceback__)
    return f"{text} ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else text
