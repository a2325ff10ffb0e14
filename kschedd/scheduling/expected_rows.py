"""ExpectedRows: how many rows to look at for so many that pass, as it went lately."""

import attrs

_MOST = 8.0  # rows for each that passes
_MARGIN = 1.06  # so that a little worse luck than lately needs no second look
_WEIGHT = 0.25  # of the latest search


@attrs.define(eq=False)
class ExpectedRows:
    """See the module."""

    _per_passing: float = attrs.field(default=1.0, init=False)  # rows looked at for each that passed, recently

    def for_passing(self, wanted: int) -> int:
        """How many rows to look at for so many that pass."""
        return int(wanted * min(self._per_passing, _MOST) * _MARGIN) + 1

    def learn(self, rows: int, passed: int) -> None:
        """Of so many rows so many have passed."""
        self._per_passing += _WEIGHT * (rows / passed - self._per_passing)
