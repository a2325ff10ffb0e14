"""Loggers that import structlog with their first line: that takes a tenth of the start of a program without a log.

For modules that a cluster in process imports as well as the daemon.
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
