"""Loggers that import structlog with their first line: the import takes a tenth of the start-up time.

Used by modules that both the daemon and a cluster in the caller's process import.
"""

from typing import Any

import attrs


@attrs.frozen
class LazyLogger:
    """The logger of this name; its methods are structlog's."""

    _name: str

    def __getattr__(self, level: str) -> Any:
        import structlog

        return getattr(structlog.get_logger(self._name), level)
