"""Claims and classes are refused at the door where their selectors cannot be compiled."""

import pytest

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
    store = Store(now=lambda: 0.0)
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
