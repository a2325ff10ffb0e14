"""The error of settings that cannot be used."""

import attrs

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class AccessError(KscheddError):
    """Settings of a door that cannot be used. `flag` is the one that opens it."""

    why: str
    flag: str = "--http"

    def __str__(self) -> str:
        return f"{self.flag}: {self.why}"
