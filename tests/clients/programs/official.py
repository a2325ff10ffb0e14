"""The official client, `kubernetes`; the test runs its newest release and release 12."""

from typing import Any

from kubernetes import client, config, watch
from manifests import CRD_NAME, GROUP, JOB, KUBECONFIG, NAME, applied, definition, deployment, gadget, job, report

config.load_kube_config(KUBECONFIG)
apps, core, batch = client.AppsV1Api(), client.CoreV1Api(), client.BatchV1Api()
extensions, custom = client.ApiextensionsV1Api(), client.CustomObjectsApi()


def until(listing: Any, name: str, ready: Any) -> Any:
    """Watch the objects until the object with this name satisfies the condition; return the event."""
    selector = f"metadata.name={name}"
    for event in watch.Watch().stream(listing, "default", field_selector=selector, timeout_seconds=30):
        if ready(event):
            return event
    raise SystemExit(f"{name}: not ready after 30 s")


def available(count: int) -> Any:
    return lambda event: event["object"].status.available_replicas == count


apps.create_namespaced_deployment("default", deployment())
report("available", until(apps.list_namespaced_deployment, NAME, available(2))["object"].status.available_replicas)
pods = core.list_namespaced_pod("default", label_selector=f"app={NAME}").items
report("pods", len(pods))
report("log", core.read_namespaced_pod_log(pods[0].metadata.name, "default").strip())

apps.patch_namespaced_deployment(NAME, "default", {"spec": {"replicas": 3}})
report("merge patch", until(apps.list_namespaced_deployment, NAME, available(3))["object"].spec.replicas)
if hasattr(apps.api_client, "param_serialize"):  # release 12 does not support the media type of server-side apply
    apply = "application/apply-patch+yaml"
    changed = apps.patch_namespaced_deployment(
        *(NAME, "default", applied()), field_manager="tests", _content_type=apply
    )
    report("server-side apply", "tests" in {each.manager for each in changed.metadata.managed_fields})

events = core.list_namespaced_event("default", field_selector=f"involvedObject.name={NAME}").items
report("events", sorted({each.reason for each in events}))

batch.create_namespaced_job("default", job())
done = until(batch.list_namespaced_job, JOB, lambda event: event["object"].status.succeeded)
report("job", done["object"].status.succeeded)
batch.delete_namespaced_job(JOB, "default", propagation_policy="Background")

extensions.create_custom_resource_definition(definition())
for event in watch.Watch().stream(extensions.list_custom_resource_definition, timeout_seconds=30):
    conditions = event["object"].status.conditions or ()
    if event["object"].metadata.name == CRD_NAME and any(each.type == "Established" for each in conditions):
        break
custom.create_namespaced_custom_object(GROUP, "v1", "default", "gadgets", gadget())
listed = custom.list_namespaced_custom_object(GROUP, "v1", "default", "gadgets")["items"]
report("custom resource", [each["spec"]["size"] for each in listed])

options = client.V1DeleteOptions(propagation_policy="Foreground")
apps.delete_namespaced_deployment(NAME, "default", body=options)
until(apps.list_namespaced_deployment, NAME, lambda event: event["type"] == "DELETED")
report("deleted", core.list_namespaced_pod("default", label_selector=f"app={NAME}").items)
