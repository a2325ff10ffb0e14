"""The error about invalid settings of a listener."""

import attrs

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class AccessError(KscheddError):
    """Invalid settings of a listener. `flag` is the flag that enables the listener."""

    why: str
    flag: str = "--http"

    def __str__(self) -> str:
        return f"{self.flag}: {self.why}"
