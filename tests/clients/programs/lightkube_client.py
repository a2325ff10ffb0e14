"""The client lightkube, which uses server-side apply and waits for conditions."""

from lightkube import Client, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event, Pod
from lightkube.types import PatchType
from manifests import CRD_NAME, GROUP, JOB, KUBECONFIG, NAME, applied, definition, deployment, gadget, job, report

client = Client(config=KubeConfig.from_file(KUBECONFIG), field_manager="tests", namespace="default")


def until_available(count: int) -> Deployment:
    for _, each in client.watch(Deployment, fields={"metadata.name": NAME}, server_timeout=30):
        if each.status and each.status.availableReplicas == count:
            return each
    raise SystemExit(f"{NAME}: {count} pods are not available after 30 s")


client.create(Deployment.from_dict(deployment()))
report("available", until_available(2).status.availableReplicas)
pods = list(client.list(Pod, labels={"app": NAME}))
report("pods", len(pods))
report("log", "".join(client.log(pods[0].metadata.name)).strip())

client.patch(Deployment, NAME, {"spec": {"replicas": 3}}, patch_type=PatchType.MERGE)
report("merge patch", until_available(3).spec.replicas)
changed = client.patch(Deployment, NAME, applied(), patch_type=PatchType.APPLY)
report("server-side apply", "tests" in {each.manager for each in changed.metadata.managedFields})

events = client.list(Event, fields={"involvedObject.name": NAME})
report("events", sorted({each.reason for each in events}))

client.create(Job.from_dict(job()))
report("job", client.wait(Job, JOB, for_conditions=["Complete"]).status.succeeded)
client.delete(Job, JOB)

client.create(CustomResourceDefinition.from_dict(definition()))
client.wait(CustomResourceDefinition, CRD_NAME, for_conditions=["Established"])
Gadget = create_namespaced_resource(GROUP, "v1", "Gadget", "gadgets")
client.create(Gadget(gadget()))
report("custom resource", [each.spec["size"] for each in client.list(Gadget)])

client.delete(Deployment, NAME)
report("deleted", [each.metadata.name for each in client.list(Deployment)])
