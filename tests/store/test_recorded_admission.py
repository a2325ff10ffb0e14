"""Tests of records of kube-apiserver's admission: the number of differences must not grow."""

from collections import Counter

import pytest

from tests.store.recorded import records
from tests.store.recorded_admission import askable, steps

#: Number of steps by topic and part that differ. Topics and parts without an entry agree completely.
KNOWN = {
    ("ResourceQuota", "object"): 4,  # the type of a Secret; a deletion by the store, without the warning for clients
    ("ResourceQuota", "warnings"): 2,
}


def test_admission_answers_as_a_real_server_does() -> None:
    attributes, wrong, where = Counter[str](), Counter[tuple[str, str]](), []
    for record in filter(askable, records("admission")):
        for step in steps(record):
            attributes[record["topic"]] += 1
            for part, agrees in step.agreement.items():
                if not agrees:
                    wrong[record["topic"], part] += 1
                    where.append(f"{step.record} step {step.number}: {part}")
    assert sum(attributes.values()) > 500
    worse = {what: count for what, count in wrong.items() if count > KNOWN.get(what, 0)}
    assert not worse, "\n".join(where)


@pytest.mark.parametrize("topic", ["LimitRanger", "ResourceQuota", "PodTolerationRestriction", "PodNodeSelector"])
def test_whether_a_request_is_admitted_is_decided_as_by_a_real_server(topic: str) -> None:
    found = [step for record in records("admission") if record["topic"] == topic for step in steps(record)]
    assert found
    assert [f"{s.record} step {s.number}" for s in found if not s.agreement["accepted"]] == []
