"""Loggers that import structlog when they write their first line: the import takes a tenth of the startup time.

Modules that both the daemon and a cluster in the caller's process import use such loggers.
"""

from typing import Any

import attrs


@attrs.frozen
class LazyLogger:
    """The logger with this name; it has the methods of structlog's loggers."""

    _name: str

    def __getattr__(self, level: str) -> Any:
        import structlog

        return getattr(structlog.get_logger(self._name), level)
