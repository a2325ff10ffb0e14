"""Tests of requests recorded by clients of kube-apiserver 1.34.9, by the number of equal responses.

The numbers in REACHED may only rise: a change with fewer equal responses fails here. In the everyday run, a third of
the files is replayed, and all of their responses must be equal. ACCEPTED and ACCEPTED_RECORDS in
conversations.py list permitted differences; other differences are in error messages.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.apiserver.conversations import FOLDER, files_of, load_compare, run
from tests.full_run import FULL, everyday, part

REACHED = {
    "backend": 120,
    "clients": 27,
    "kubectl-1.27": 790,
    "kubectl-1.37": 790,
}


@pytest.mark.parametrize("name", everyday(REACHED, lambda name: name != "kubectl-1.27"))
def test_records_are_answered_as_recorded(shared_part: Callable[[str], Path], name: str) -> None:
    folder = shared_part(FOLDER)
    compare = load_compare(folder)
    found: Counter[str] = Counter()
    different: list[str] = []
    for _, file in part(3, list(files_of(folder, [name]))):
        agreement = run(file, compare)
        found["equal"] += agreement.equal
        found["total"] += agreement.total
        different += agreement.differences
    assert found["total"], f"there are records in {name}"
    assert found["equal"] >= (REACHED[name] if FULL else found["total"]), (
        f"{found['equal']} of {found['total']}; different: {' '.join(different)}"
    )
