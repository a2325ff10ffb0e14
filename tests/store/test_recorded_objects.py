"""How far the store agrees with a recorded kube-apiserver, family by family: the figures may rise, never fall.

Creates, updates and sequences are asked over HTTP, in `tests/apiserver/test_recorded.py`.
`python -m tests.store.recorded [create update patch] [--show ID]` prints each disagreement.
"""

from collections import Counter

import pytest

from tests.store.recorded import CONTENT_TYPES, agreement, answer, records

# Family -> part -> how many records agree, of how many that part is asked of (content types nobody knows are left out).
BAR: dict[str, dict[str, tuple[int, int]]] = {
    "patch": {
        "accepted": (488, 488),
        "code": (457, 488),
        "causes": (102, 119),
        "message": (151, 209),
        "object": (279, 279),
        "managedFields": (53, 53),
        "warnings": (7, 11),
    },
}


@pytest.mark.parametrize("family", sorted(BAR))
def test_the_store_answers_as_the_recorded_server_did(family: str) -> None:
    agreed: Counter[str] = Counter()
    for record in records(family):
        if "content_type" in record and record["content_type"] not in CONTENT_TYPES:
            continue
        got = answer(record)
        assert got is not None, f"{record['id']}: its setup was refused"
        for part, alike in agreement(record, got).items():
            agreed[part] += alike
    assert dict(agreed) == {part: reached for part, (reached, _) in BAR[family].items()}, "raise the bar, or mend it"
