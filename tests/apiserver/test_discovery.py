"""Tests that the discovery documents equal those of a real kube-apiserver 1.34."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kschedd.apiserver.catalogue.resources import METRICS_GROUP
from kschedd.apiserver.discovery import AGGREGATED
from kschedd.config.versions.kube_versions import V1_34
from tests.apiserver.asking import asking
from tests.apiserver.conversations import FOLDER

OURS = {METRICS_GROUP}  # the group of metrics-server, which is a separate server in a real cluster

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [
            {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}
            for name in ("v1", "v1alpha1")
        ],
    },
}


def recorded(folder: Path, name: str) -> Any:
    return json.loads(gzip.decompress((folder / "discovery" / name).read_bytes()))


async def test_every_page_is_as_recorded(shared_part: Callable[[str], Path]) -> None:
    pages = recorded(shared_part(FOLDER), "plain.json.gz")
    differing = []
    async with asking(version=V1_34) as api:
        for path, page in pages.items():
            if path == "/version":
                continue  # tells of the build
            answered = (await api.ask("GET", path)).json
            if path == "/api":
                answered["serverAddressByClientCIDRs"][0]["serverAddress"] = "{host}"
            if path == "/apis":
                answered["groups"] = [group for group in answered["groups"] if group["name"] not in OURS]
            if answered != page:
                differing.append(path)
    assert differing == []
    assert len(pages) > 40


async def test_the_aggregated_documents_are_as_recorded(shared_part: Callable[[str], Path]) -> None:
    documents = recorded(shared_part(FOLDER), "aggregated-v2.json.gz")
    async with asking(version=V1_34) as api:
        for path in ("/api", "/apis"):
            answered = await api.ask("GET", path, accept=AGGREGATED)
            wanted = documents[path]
            assert answered.headers["content-type"] == wanted["response_headers"]["Content-Type"]
            found = answered.json
            found["items"] = [group for group in found["items"] if group["metadata"].get("name") not in OURS]
            assert found == wanted["body"]


async def test_which_version_is_stored_is_told_of_what_is_stored() -> None:
    async with asking(version=V1_34) as api:
        await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
        core = (await api.ask("GET", "/api/v1")).json
        pages = [(await api.ask("GET", f"/apis/example.com/{name}")).json for name in ("v1", "v1alpha1")]
    assert "apiVersion" not in core
    hashes = {each["name"]: each.get("storageVersionHash") for each in core["resources"]}
    assert (hashes["pods"], hashes["bindings"], hashes["pods/status"]) == ("xPOwRZ+Yhw8=", None, None)
    first, second = (page["resources"][0]["storageVersionHash"] for page in pages)
    assert first == second
    assert all(page["apiVersion"] == "v1" for page in pages)
