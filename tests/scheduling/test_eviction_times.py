"""Tests that a plugin's writes that need a time get the time of the attempt."""

from kschedd.framework.writes import Delete, MergePatch
from kschedd.scheduling.failure import stamped

AT, BEFORE = "2025-01-01T00:00:07Z", "2024-12-31T00:00:00Z"


def test_conditions_without_a_time_get_one_and_everything_else_stays() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": BEFORE}
    evicted = {"type": "DisruptionTarget", "status": "True"}
    tell = MergePatch("Pod", "a", "p", {"metadata": {"uid": "u"}, "status": {"conditions": [ready, evicted]}}, "status")
    clear = MergePatch("Pod", "a", "q", {"status": {"nominatedNodeName": None}}, "status")
    go = Delete("Pod", "a", "p", "u")
    reported, cleared, gone = stamped((tell, clear, go), AT)
    assert isinstance(reported, MergePatch)
    assert reported.patch == {
        "metadata": {"uid": "u"},
        "status": {"conditions": [ready, {**evicted, "lastTransitionTime": AT}]},
    }
    assert cleared is clear
    assert gone is go
    assert "lastTransitionTime" not in evicted
