"""DeviceTaintRule: served and checked by 1.37, unknown to 1.36; it counts for pods, and its end wakes them."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_36, V1_37
from kschedd.store.errors import Invalid, NoMatch
from kschedd.store.store import Store

TAINT = {"key": "example.com/broken", "effect": "NoSchedule"}


def rule(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": spec}


def test_it_is_kept_as_it_is() -> None:
    selector = {"driver": "a.example.com", "pool": "rack-1/n1", "device": "gpu-0"}
    kept = Store(rules=V1_37.rules).create(rule(taint=TAINT, deviceSelector=selector))
    assert kept.spec == {"taint": TAINT, "deviceSelector": selector}
    assert kept.namespace == ""


def test_1_36_does_not_know_it() -> None:
    with pytest.raises(NoMatch):
        Store(rules=V1_36.rules).create(rule(taint=TAINT), as_client=True)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"taint": {"key": "a", "effect": "PreferNoSchedule"}}, "spec.taint.effect"),
        ({"taint": {"key": "a"}}, "spec.taint.effect"),
        ({"taint": {"key": "a/b/c", "effect": "None"}}, "spec.taint.key"),
        ({"taint": TAINT, "deviceSelector": {"driver": "A_"}}, "spec.deviceSelector.driver"),
        ({"taint": TAINT, "deviceSelector": {"pool": "-"}}, "spec.deviceSelector.pool"),
        ({"taint": TAINT, "deviceSelector": {"device": "a.b"}}, "spec.deviceSelector.device"),
    ],
)
def test_a_wrong_one_is_refused(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(Invalid, match=path):
        Store(rules=V1_37.rules).create(rule(**spec))
