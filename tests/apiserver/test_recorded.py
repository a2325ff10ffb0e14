"""Tests of the agreement with a recorded kube-apiserver by family; the figures may only rise.

The everyday run replays a part of the records, all of which must agree.
`python -m tests.apiserver.recorded FAMILY --part text` prints the differences.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apiserver.recorded import FOLDER, counted, run
from tests.full_run import FULL

# family -> part -> number of equal responses
REACHED = {
    "admission": {"code": 587, "object": 410, "causes": 14, "text": 183},
    "create": {"code": 1902, "object": 769, "causes": 835, "text": 1253},
    "update": {"code": 721, "object": 374, "causes": 292, "text": 360},
    "patch": {"code": 490, "object": 279, "causes": 119, "text": 221},
    "delete-and-bind": {"code": 931, "object": 675, "causes": 40, "text": 261},
}
EVERY = 7  # in the everyday run, every seventh record is replayed


@pytest.mark.parametrize("family", REACHED)
def test_the_face_answers_as_the_recorded_server_did(shared_part: Callable[[str], Path], family: str) -> None:
    agreed = counted(run(shared_part(FOLDER), family, every=EVERY))
    assert agreed.keys() == REACHED[family].keys()
    fallen = {
        part: alike
        for part, (alike, requests) in agreed.items()
        if alike < (REACHED[family][part] if FULL else requests)
    }
    assert not fallen, f"fewer agree than did: {REACHED[family]}"
