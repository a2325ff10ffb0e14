"""Code and Status: a plugin's verdict on a pod or a node.

Source: Kubernetes v1.34, kube-scheduler/framework/interface.go (Code, Status).
"""

import threading
import traceback
from enum import IntEnum
from pathlib import PurePath
from typing import Final

import attrs

from kschedd.framework.faults import PluginError, plain_text


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
        """Kubernetes' name, such as `UnschedulableAndUnresolvable`."""
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
    """A verdict with its reasons. Success may also be represented by None."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def rejected(self) -> bool:
        """True if the status is a rejection, after which the pod may be retried when the cluster changes."""
        return self.code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        """Return the status with this plugin, unless it already names a plugin."""
        return self if self.plugin else Status(self.code, self.reasons, plugin)


SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    return Status(Code.ERROR, reasons)


_OURS: Final = f"{PurePath(__file__).parent.parent}/"
_LIBRARY: Final = str(PurePath(threading.__file__).parent)


def fault_text(fault: BaseException) -> str:
    """Return an exception in one line, with its line number in the plugin's code.

    Example: `ValueError: boom (my_plugin.py:12)`.
    """
    if isinstance(fault, PluginError):
        return fault.why
    try:
        raw_text = plain_text(str(fault.msg if isinstance(fault, SyntaxError) else fault))
        text = f"{type(fault).__name__}: {raw_text}" if raw_text else type(fault).__name__
    except BaseException:  # the exception's __str__ runs plugin code
        text = type(fault).__name__
    if isinstance(fault, SyntaxError) and fault.filename:
        return f"{text} ({PurePath(fault.filename).name}:{fault.lineno})"
    frames = traceback.extract_tb(fault.__traceback__)
    if not frames:
        return text
    outside = [frame for frame in frames if not is_ours(frame.filename)]
    theirs = [frame for frame in outside if not _is_library(frame.filename)]
    frame = [*frames, *outside, *theirs][-1]
    return f"{text} ({PurePath(frame.filename).name}:{frame.lineno})"


def is_ours(file: str) -> bool:
    """Return whether this file belongs to kschedd or to Python's import system."""
    return file.startswith((_OURS, "<frozen "))


def _is_library(file: str) -> bool:
    return "site-packages" in PurePath(file).parts or file.startswith(_LIBRARY)
