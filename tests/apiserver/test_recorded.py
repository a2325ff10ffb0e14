"""How far the face agrees with a recorded kube-apiserver, family by family: the figures may rise, never fall.

`python -m tests.apiserver.recorded FAMILY --part text` prints what differs.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apiserver.recorded import FOLDER, counted, run

# Family -> part -> how many answers agree.
REACHED = {
    "admission": {"code": 587, "object": 408, "causes": 14, "text": 183},
    "create": {"code": 1866, "object": 762, "causes": 774, "text": 1144},
    "update": {"code": 686, "object": 374, "causes": 243, "text": 239},
    "patch": {"code": 471, "object": 279, "causes": 102, "text": 160},
    "delete-and-bind": {"code": 931, "object": 675, "causes": 40, "text": 261},
}


@pytest.mark.parametrize("family", REACHED)
def test_the_face_answers_as_the_recorded_server_did(shared_part: Callable[[str], Path], family: str) -> None:
    agreed = {part: alike for part, (alike, _) in counted(run(shared_part(FOLDER), family)).items()}
    fallen = {part: alike for part, alike in agreed.items() if alike < REACHED[family][part]}
    assert not fallen, f"fewer agree than did: {REACHED[family]}"
    assert agreed.keys() == REACHED[family].keys()
