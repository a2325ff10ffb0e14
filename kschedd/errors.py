"""Base class of all errors caused by input or environment, never by a bug."""


class KscheddError(Exception):
    """An error caused by input or environment; never raised for a bug.

    One that has only its reason to tell has it in `why`.
    """

    def __str__(self) -> str:
        return self.why if hasattr(self, "why") else super().__str__()
