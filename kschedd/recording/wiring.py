"""The components that replace those of the daemon when a run is recorded."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from kschedd.config.in_tree import IN_TREE
from kschedd.config.model import Config
from kschedd.controllers.options import ControllerOptions
from kschedd.framework.guarding.guarded import GUARDED_METHODS
from kschedd.framework.registry import Registry
from kschedd.recording.configuration import text_of
from kschedd.recording.format import RecordingError, RecordingHeader
from kschedd.recording.notes import DRIVER
from kschedd.recording.recorder import enter, leave
from kschedd.recording.values import pack, unpack


@attrs.frozen
class RecordOptions:
    """Options of a recording.

    `file`: record the run into this new file; None: do not record from the start. `controllers`, `without`: the
    controllers that the daemon runs or omits.
    """

    file: Path | None = None
    controllers: ControllerOptions = attrs.field(factory=ControllerOptions)
    without: frozenset[str] = frozenset()
    kschedd: str = ""  # the version of kschedd


def header_of(options: RecordOptions, config: Config, registry: Registry, seed: int, start_s: float) -> RecordingHeader:
    return RecordingHeader(
        options.kschedd,
        config.version.name,
        seed,
        start_s,
        text_of(config, IN_TREE | registry.catalogue()),
        dict(config.feature_gates),
        config.unschedulable_flush_s,
        pack(options.controllers),
        sorted(options.without),
        {name: _methods(cls) for name, cls in registry.added.items()},
        holds_preemptors=True,
    )


def controllers_of(header: RecordingHeader, file: Path) -> ControllerOptions:
    """Return the options of the cluster's controllers. Raises RecordingError and UnreadableValue."""
    options = unpack(header.controllers)
    if not isinstance(options, ControllerOptions):
        raise RecordingError(str(file), "its header does not list the cluster's controllers")
    return options


def _methods(cls: type[Any]) -> list[str]:
    return [name for name in (*GUARDED_METHODS, "sort_key", "events_to_register") if callable(getattr(cls, name, None))]


@contextmanager
def as_driver() -> Iterator[None]:
    """Record the results of plugins that are created in this context as results of plugins of the driver."""
    before = enter(DRIVER)
    try:
        yield
    finally:
        leave(before)
