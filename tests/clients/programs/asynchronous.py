"""The asynchronous variant of the official client, `kubernetes_asyncio`."""

import asyncio
from typing import Any

from kubernetes_asyncio import client, config, watch
from manifests import GROUP, JOB, KUBECONFIG, NAME, applied, definition, deployment, gadget, job, report


async def until(listing: Any, name: str, ready: Any) -> Any:
    """Watch the objects until the object with this name satisfies the condition; return the event."""
    selector = f"metadata.name={name}"
    async with watch.Watch().stream(listing, "default", field_selector=selector, timeout_seconds=30) as stream:
        async for event in stream:
            if ready(event):
                return event
    raise SystemExit(f"{name}: not ready after 30 s")


def available(count: int) -> Any:
    return lambda event: event["object"].status.available_replicas == count


async def main() -> None:
    await config.load_kube_config(KUBECONFIG)
    async with client.ApiClient() as api:
        apps, core, batch = client.AppsV1Api(api), client.CoreV1Api(api), client.BatchV1Api(api)
        extensions, custom = client.ApiextensionsV1Api(api), client.CustomObjectsApi(api)

        await apps.create_namespaced_deployment("default", deployment())
        found = await until(apps.list_namespaced_deployment, NAME, available(2))
        report("available", found["object"].status.available_replicas)
        pods = (await core.list_namespaced_pod("default", label_selector=f"app={NAME}")).items
        report("pods", len(pods))
        report("log", (await core.read_namespaced_pod_log(pods[0].metadata.name, "default")).strip())

        merge = "application/merge-patch+json"
        await apps.patch_namespaced_deployment(NAME, "default", {"spec": {"replicas": 3}}, _content_type=merge)
        report(
            "merge patch", (await until(apps.list_namespaced_deployment, NAME, available(3)))["object"].spec.replicas
        )
        changed = await apps.patch_namespaced_deployment(
            *(NAME, "default", applied()), field_manager="tests", _content_type="application/apply-patch+yaml"
        )
        report("server-side apply", "tests" in {each.manager for each in changed.metadata.managed_fields})

        events = await core.list_namespaced_event("default", field_selector=f"involvedObject.name={NAME}")
        report("events", sorted({each.reason for each in events.items}))

        await batch.create_namespaced_job("default", job())
        found = await until(batch.list_namespaced_job, JOB, lambda event: event["object"].status.succeeded)
        report("job", found["object"].status.succeeded)
        await batch.delete_namespaced_job(JOB, "default", propagation_policy="Background")

        await extensions.create_custom_resource_definition(definition())
        await custom.create_namespaced_custom_object(GROUP, "v1", "default", "gadgets", gadget())
        listed = await custom.list_namespaced_custom_object(GROUP, "v1", "default", "gadgets")
        report("custom resource", [each["spec"]["size"] for each in listed["items"]])

        await apps.delete_namespaced_deployment(NAME, "default", propagation_policy="Foreground")
        await until(apps.list_namespaced_deployment, NAME, lambda event: event["type"] == "DELETED")
        report("deleted", (await core.list_namespaced_pod("default", label_selector=f"app={NAME}")).items)


asyncio.run(main())
