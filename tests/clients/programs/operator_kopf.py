"""An operator with kopf for a custom resource: each Gadget owns a Deployment, whose replicas are the Gadget's size.

The operator runs in a thread; this program creates, resizes and deletes a Gadget with the same requests as kubectl.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import kopf
from kubernetes import client, config
from manifests import CRD_NAME, GROUP, KUBECONFIG, NAME, definition, deployment, gadget, report

config.load_kube_config(KUBECONFIG)
apps, custom, extensions = client.AppsV1Api(), client.CustomObjectsApi(), client.ApiextensionsV1Api()
ready, stop = threading.Event(), threading.Event()
deleted: list[str] = []


@kopf.on.login()
def login(**_: Any) -> Any:
    return kopf.ConnectionInfo(server=client.Configuration.get_default_copy().host)


@kopf.on.create(GROUP, "v1", "gadgets")
def create(spec: Any, body: Any, **_: Any) -> dict[str, Any]:
    owned = deployment()
    owned["spec"]["replicas"] = spec["size"]
    kopf.adopt(owned, owner=body)
    apps.create_namespaced_deployment("default", owned)
    return {"deployment": NAME}


@kopf.on.field(GROUP, "v1", "gadgets", field="spec.size", old=kopf.PRESENT)
def resize(new: int, **_: Any) -> None:
    apps.patch_namespaced_deployment(NAME, "default", {"spec": {"replicas": new}})


@kopf.on.delete(GROUP, "v1", "gadgets")
def delete(name: str, **_: Any) -> None:
    deleted.append(name)


def until(what: str, condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + 30
    while not (value := condition()):
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not reached after 30 s")
        time.sleep(0.05)
    return value


def replicas() -> int:
    found = apps.list_namespaced_deployment("default").items
    return (found[0].status.available_replicas or 0) if found else 0


def stored() -> Any:
    return custom.list_namespaced_custom_object(GROUP, "v1", "default", "gadgets")["items"]


def established() -> bool:
    found = extensions.read_custom_resource_definition(CRD_NAME).status
    return any(each.type == "Established" for each in found.conditions or ())


def operate() -> None:
    running = kopf.operator(namespaces=["default"], ready_flag=ready, stop_flag=stop, standalone=True)
    asyncio.run(running)


body = definition()
properties = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
properties["x-kubernetes-preserve-unknown-fields"] = True
extensions.create_custom_resource_definition(body)
until("definition", established)
thread = threading.Thread(target=operate, daemon=True)
thread.start()
report("operator", ready.wait(30))
custom.create_namespaced_custom_object(GROUP, "v1", "default", "gadgets", gadget())
report("created", until("3 pods", lambda: replicas() == 3))
report("status", until("status", lambda: stored()[0].get("status", {}).get("create")))
custom.patch_namespaced_custom_object(GROUP, "v1", "default", "gadgets", "g", {"spec": {"size": 1}})
report("resized", until("1 pod", lambda: replicas() == 1))
custom.delete_namespaced_custom_object(GROUP, "v1", "default", "gadgets", "g")
until("no Gadget", lambda: not stored())
report("finalized", deleted)
report("collected", until("no Deployment", lambda: not apps.list_namespaced_deployment("default").items))
stop.set()
thread.join(20)
report("stopped", not thread.is_alive())
