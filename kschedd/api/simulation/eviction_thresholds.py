"""Eviction thresholds of a kubelet: values of --eviction-hard, --eviction-soft and similar flags.

Source: Kubernetes v1.34, pkg/kubelet/eviction/helpers.go (ParseThresholdConfig), defaults_linux.go.
Units: bytes, counts, seconds. Raises: AnnotationError, with a message that names the allowed values.
"""

import math
from collections.abc import Iterable
from typing import ClassVar, Final

import attrs

from kschedd.api.quantity import canonical, format_value
from kschedd.api.simulation.values import AnnotationError, bytes_of, duration_of

MEMORY: Final = "memory.available"
NODEFS: Final = "nodefs.available"
NODEFS_INODES: Final = "nodefs.inodesFree"
IMAGEFS: Final = "imagefs.available"
IMAGEFS_INODES: Final = "imagefs.inodesFree"
PID: Final = "pid.available"
SIGNALS: Final = (MEMORY, NODEFS, NODEFS_INODES, IMAGEFS, IMAGEFS_INODES, PID)


@attrs.frozen
class ThresholdValue:
    """A quantity, or a percentage of the capacity."""

    units: int = 0
    share: float | None = None  # 0 to 1 for a percentage
    written: str = attrs.field(default="", eq=False)

    def of(self, capacity: int) -> int:
        """Return the threshold as an amount, for a node with this capacity.

        Source: pkg/kubelet/eviction/api/types.go (GetThresholdQuantity).
        """
        return self.units if self.share is None else int(capacity * self.share)

    def text(self, capacity: int) -> str:
        """Return the amount as the kubelet's messages print it."""
        return self.written or format_value(self.of(capacity), "BinarySI")


@attrs.frozen
class Threshold:
    """An eviction threshold, which is met if less than `value` of the signal's resource is available."""

    signal: str
    value: ThresholdValue
    grace_s: float = 0.0  # 0: a hard threshold
    min_reclaim: ThresholdValue | None = None

    @property
    def hard(self) -> bool:
        return self.grace_s == 0


@attrs.frozen
class EvictionConfig:
    """A kubelet's eviction settings.

    The defaults are those of Kubernetes on Linux (pkg/kubelet/eviction/defaults_linux.go).
    """

    thresholds: tuple[Threshold, ...]
    transition_s: float  # seconds that a pressure condition remains after the end of the pressure
    max_pod_grace_s: int  # maximum grace period in seconds of pods evicted because of a soft threshold

    DEFAULT_TRANSITION_S: ClassVar[float] = 300.0


DEFAULT_HARD: Final = (
    "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,imagefs.inodesFree<5%"
)


def _amount_of(text: str) -> ThresholdValue:
    if text.endswith("%"):
        try:
            percent = float(text[:-1])
        except ValueError:
            percent = math.nan
        if not 0 <= percent <= 100:
            raise AnnotationError(f'"{text}": a percentage from 0% to 100% is expected')
        return ThresholdValue(share=percent / 100)
    try:
        return ThresholdValue(bytes_of(text), written=canonical(text))
    except AnnotationError as wrong:
        raise AnnotationError(f'"{text}": {wrong}') from None


def _statements(text: str, sign: str) -> Iterable[tuple[str, str]]:
    for statement in (part.strip() for part in text.split(",")):
        if not statement:
            continue
        signal, found, value = statement.partition(sign)
        if signal not in SIGNALS or not found or not value:
            raise AnnotationError(
                f'"{statement}": SIGNAL{sign}VALUE is expected; SIGNAL must be one of {", ".join(SIGNALS)}'
            )
        yield signal, value


def thresholds_of(text: str) -> dict[str, ThresholdValue]:
    """Parse thresholds such as `memory.available<100Mi`. Raises AnnotationError."""
    return {signal: _amount_of(value) for signal, value in _statements(text, "<")}


def reclaims_of(text: str) -> dict[str, ThresholdValue]:
    """Parse minimum reclaims such as `memory.available=100Mi`. Raises AnnotationError."""
    return {signal: _amount_of(value) for signal, value in _statements(text, "=")}


def graces_of(text: str) -> dict[str, float]:
    """Parse grace periods such as `memory.available=30s`. Raises AnnotationError."""
    return {signal: duration_of(value) for signal, value in _statements(text, "=")}
