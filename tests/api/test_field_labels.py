"""Tests of the fields that field selectors support for each kind."""

import pytest

from kschedd.api.schemas.field_labels import FieldLabelError, check_field_selector
from kschedd.api.schemas.kinds import lookup
from kschedd.api.selecting.selector_text import parse_field_selector


@pytest.mark.parametrize(
    ("kind", "selector"),
    [
        ("pods", "spec.nodeName=n1,status.phase!=Running,metadata.name=web"),
        ("pods", "spec.host=n1"),
        ("nodes", "spec.unschedulable=true"),
        ("events", "involvedObject.name=web,reason=Scheduled,type=Warning"),
        ("namespaces", "status.phase=Active"),
        ("deployments", "metadata.name=web,metadata.namespace=default"),
        ("widgets", "metadata.name=w"),
    ],
)
def test_supported(kind: str, selector: str) -> None:
    check_field_selector(lookup(kind), parse_field_selector(selector))
    check_field_selector(lookup(kind), None)


@pytest.mark.parametrize(
    ("kind", "selector", "answer"),
    [
        ("pods", "spec.foo=x", "field label not supported: spec.foo; of a Pod there are metadata.name, "),
        ("nodes", "metadata.name=n,spec.providerID=x", "field label not supported: spec.providerID; of a Node "),
        ("nodes", "metadata.namespace=x", "field label not supported: metadata.namespace; of a Node "),
        ("namespaces", "metadata.namespace=x", "field label not supported: metadata.namespace; of a Namespace "),
        (
            "resourceslices",
            "metadata.namespace=x",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: metadata.namespace",
        ),
        (
            "deployments",
            "spec.replicas=3",
            '"spec.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_not_supported(kind: str, selector: str, answer: str) -> None:
    with pytest.raises(FieldLabelError) as refusal:
        check_field_selector(lookup(kind), parse_field_selector(selector))
    assert str(refusal.value).startswith(answer)
