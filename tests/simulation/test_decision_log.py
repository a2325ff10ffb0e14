"""Tests that an error of the decision log names its file."""

from pathlib import Path

import pytest

from kschedd.simulation.engine import LoggedAttempt
from kschedd.simulation.results.decisions import DecisionLog, DecisionLogError


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_disk_that_fills_up_is_told_with_the_file() -> None:
    with pytest.raises(DecisionLogError, match=r"^/dev/full: cannot be written: No space left on device$"):
        with DecisionLog(Path("/dev/full")) as log:
            log.write(LoggedAttempt(0.0, "default/web", 1, "n1", 1, 1, 1, None, ""))
