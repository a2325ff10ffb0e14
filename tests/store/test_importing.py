"""Tests of the import of objects, one batch after the other."""

from typing import Any

from kschedd.store.importing import Importer


def pod(name: str, uid: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    meta = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "7"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def taken(importer: Importer, *raws: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names of the accepted objects, and the errors of the rejected objects."""
    refused: list[str] = []
    objects = importer.take(
        [(raw, None) for raw in raws],
        lambda raw, error: refused.append(str(error)),
        lambda raw, warning: refused.append(warning),
    )
    return [obj.name for obj in objects], refused


def test_a_second_object_of_a_name_is_rejected_until_the_first_is_forgotten() -> None:
    importer = Importer(lambda: 0.0)
    assert taken(importer, pod("a", "1"), pod("b", "2"), pod("a", "3")) == (["a", "b"], ['pods "a" already exists'])
    assert taken(importer, pod("b", "2")) == ([], ['pods "b" already exists'])
    importer.forget()
    assert taken(importer, pod("b", "2"), pod("a", "3")) == (["b", "a"], [])


def test_specs_that_were_accepted_are_known_after_the_objects_are_forgotten() -> None:
    importer = Importer(lambda: 0.0)
    [first] = importer.take([(pod("a", "1"), None)], lambda raw, error: None, lambda raw, warning: None)
    importer.forget()
    [second] = importer.take([(pod("b", "2"), None)], lambda raw, error: None, lambda raw, warning: None)
    assert first.raw["spec"] is second.raw["spec"]
