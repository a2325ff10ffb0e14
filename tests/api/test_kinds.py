"""Tests that kinds are found by all their names."""

import pytest

from kschedd.api.schemas.kinds import KINDS, kind_of, lookup


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("Pod", "Pod"),
        ("pods", "Pod"),
        ("po", "Pod"),
        ("PO", "Pod"),
        ("deploy", "Deployment"),
        ("deployments.apps", "Deployment"),
        ("deployment.v1.apps", "Deployment"),
        ("sc", "StorageClass"),
        ("pc", "PriorityClass"),
        ("ev", "Event"),
        ("events.events.k8s.io", "Event"),
        ("pods.v1", "Pod"),
    ],
)
def test_words(word: str, name: str) -> None:
    assert lookup(word).name == name


def test_no_word_means_two_kinds() -> None:
    words = [word for kind in KINDS for word in {kind.singular, kind.plural, *kind.short}]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("word", "plural"),
    [
        ("Widget", "widgets"),
        ("Policy", "policies"),
        ("Box", "boxes"),
        ("widgets", "widgets"),
        ("Gateway", "gateways"),
    ],
)
def test_an_unknown_kind_is_a_kind_too(word: str, plural: str) -> None:
    kind = lookup(word)
    assert not kind.known
    assert kind.plural == plural


def test_a_kind_of_another_group_is_not_ours() -> None:
    ours = kind_of({"apiVersion": "v1", "kind": "Service"})
    theirs = kind_of({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"namespace": "a"}})
    assert ours.known
    assert not theirs.known
    assert theirs.name == "Service.serving.knative.dev"
    assert theirs.namespaced
    assert not lookup("services.serving.knative.dev").known


def test_another_version_of_a_group_is_still_its_kind() -> None:
    assert kind_of({"apiVersion": "apps/v1beta1", "kind": "Deployment"}).name == "Deployment"
