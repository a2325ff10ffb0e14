"""The client pykube-ng."""

import pykube
from manifests import GROUP, JOB, KUBECONFIG, NAME, definition, deployment, gadget, job, report
from pykube.objects import APIObject, NamespacedAPIObject

api = pykube.HTTPClient(pykube.KubeConfig.from_file(KUBECONFIG))


class Definition(APIObject):
    version, endpoint, kind = "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition"


class Gadget(NamespacedAPIObject):
    version, endpoint, kind = f"{GROUP}/v1", "gadgets", "Gadget"


def until(kind: type[APIObject], name: str, key: str, value: int) -> int:
    """Watch the object until the status field has this value."""
    found = kind.objects(api).filter(namespace="default", field_selector={"metadata.name": name})
    for event in found.watch():
        if event.object.obj.get("status", {}).get(key) == value:
            return value
    raise SystemExit(f"{name}: status.{key} did not become {value}")


created = pykube.Deployment(api, deployment())
created.create()
report("available", until(pykube.Deployment, NAME, "availableReplicas", 2))
pods = list(pykube.Pod.objects(api).filter(namespace="default", selector={"app": NAME}))
report("pods", len(pods))
report("log", pods[0].logs().strip())

created.patch({"spec": {"replicas": 3}})
report("merge patch", until(pykube.Deployment, NAME, "availableReplicas", 3))

events = pykube.Event.objects(api).filter(namespace="default", field_selector={"involvedObject.name": NAME})
report("events", sorted({each.obj["reason"] for each in events}))

pykube.Job(api, job()).create()
report("job", until(pykube.Job, JOB, "succeeded", 1))
pykube.Job.objects(api).get_by_name(JOB).delete()

Definition(api, definition()).create()
Gadget(api, gadget()).create()
report("custom resource", [each.obj["spec"]["size"] for each in Gadget.objects(api).filter(namespace="default")])

created.delete(propagation_policy="Background")
report("deleted", [each.name for each in pykube.Deployment.objects(api).filter(namespace="default")])
