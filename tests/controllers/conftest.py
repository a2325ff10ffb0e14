"""A check after every test of controllers that no fault was recorded.

After an exception, a controller retries each object, so the result of a test may be correct in spite of a fault.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from kschedd.object_faults import FaultLedger


@pytest.fixture(autouse=True)
def _no_faults(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail the test if a controller recorded a fault, unless it is marked with `object_faults`."""
    raised: list[str] = []
    note = FaultLedger.note

    def noted(self: FaultLedger[Any], ref: Any, work: Any, fault: Exception, *when: Any) -> None:
        raised.append(f"{ref}: {fault!r}")
        note(self, ref, work, fault, *when)

    monkeypatch.setattr(FaultLedger, "note", noted)
    yield
    if request.node.get_closest_marker("object_faults") is None:
        assert raised == []
