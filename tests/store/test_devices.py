"""Tests that claims and classes whose selectors do not compile are rejected."""

from typing import Any

import pytest

from kschedd.config.versions.kube_versions import V1_34
from kschedd.store.errors import Invalid
from kschedd.store.store import Store


def test_a_selector_that_does_not_compile_is_refused_with_its_path() -> None:
    selector = {"cel": {"expression": "device.driver =="}}
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [selector]},
    }
    with pytest.raises(Invalid) as refused:
        Store(now=lambda: 0.0).create(raw)
    assert refused.value.faults[0].path == "spec.selectors[0].cel.expression"


def test_admin_access_needs_a_namespace_that_allows_it() -> None:
    store = Store(now=lambda: 0.0, rules=V1_34.default_rules)
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "adminAccess": True}}
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }
    with pytest.raises(Invalid, match="admin access"):
        store.create(raw)
    label = {"resource.kubernetes.io/admin-access": "true"}
    store.merge_patch("Namespace", "", "default", {"metadata": {"labels": label}})
    assert store.create(raw).name == "c"
    gone = {"resource.kubernetes.io/admin-access": None}
    store.merge_patch("Namespace", "", "default", {"metadata": {"labels": gone}})
    assert store.update({**raw, "metadata": {**raw["metadata"], "labels": {"a": "b"}}}).metadata["labels"] == {"a": "b"}
    with pytest.raises(Invalid) as refused:
        store.patch_status("ResourceClaim", "default", "c", allocated("d0", adminAccess=True))
    assert refused.value.faults[0].path == "status.allocation.devices.results[0].adminAccess"


def allocated(*devices: str, **fields: Any) -> dict[str, Any]:
    results = [{"request": "r", "driver": "d", "pool": "p", "device": device, **fields} for device in devices]
    return {"allocation": {"devices": {"results": results}}}


def test_what_is_said_of_devices_goes_with_them_and_shares_where_there_are_none() -> None:
    store = Store(now=lambda: 0.0, rules=V1_34.default_rules)
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}
    store.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": {"requests": [request]}},
        }
    )

    def reported(status: dict[str, Any]) -> Any:
        return store.patch_status("ResourceClaim", "default", "c", status).raw["status"]

    answer = [{"driver": "d", "pool": "p", "device": device, "conditions": []} for device in ("d0", "d1")]
    status = reported({**allocated("d0", "d1", shareID="s", consumedCapacity={"m": "1"}), "devices": answer})
    assert status["allocation"]["devices"]["results"] == allocated("d0", "d1")["allocation"]["devices"]["results"]
    assert len(status["devices"]) == 2
    assert reported({"allocation": None, "devices": answer}) == {}
