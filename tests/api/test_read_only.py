"""Read-only API objects for plugins."""

import pytest

from kschedd.api.pods import Pod
from kschedd.api.read_only import read_only
from kschedd.values import FrozenDict


def test_annotations_and_requests_are_read_without_a_copy_of_the_manifest() -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "annotations": {"a": "1"}},
        "spec": {"containers": [container]},
        "status": {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]},
    }
    pod = Pod.from_raw(raw)
    seen = read_only(pod)
    copied = type(pod).__mro__[1].__dict__["raw"].__get__
    assert (seen.annotations, seen.requests["cpu"], seen.reports_resources) == ({"a": "1"}, 3000, True)
    assert copied(seen) is raw
    with pytest.raises(TypeError, match="read-only"):
        seen.annotations["a"] = "2"  # type: ignore[index]
    assert isinstance(seen.raw, FrozenDict)
    assert isinstance(copied(seen), FrozenDict)
    assert (seen.annotations, seen.requests["cpu"]) == ({"a": "1"}, 3000)


def test_an_object_without_annotations_has_none() -> None:
    raw = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    assert read_only(Pod.from_raw(raw)).annotations == {}
