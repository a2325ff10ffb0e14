"""The client kr8s, which finds the served kinds through discovery."""

import kr8s
from kr8s.objects import Deployment, Job, new_class, object_from_spec
from manifests import GROUP, KUBECONFIG, NAME, definition, deployment, gadget, job, report

api = kr8s.api(kubeconfig=KUBECONFIG)
found = Deployment(deployment(), api=api)
found.create()
found.wait("condition=Available", timeout=30)
for _, each in api.watch("deployments", namespace="default"):
    if each.status.get("availableReplicas") == 2:
        report("available", 2)
        break
pods = list(api.get("pods", namespace="default", label_selector=f"app={NAME}"))
report("pods", len(pods))
report("log", next(iter(pods[0].logs())))

found.patch({"spec": {"replicas": 3}})
for _, each in api.watch("deployments", namespace="default"):
    if each.status.get("availableReplicas") == 3:
        report("merge patch", each.spec.replicas)
        break

events = api.get("events", namespace="default", field_selector=f"involvedObject.name={NAME}")
report("events", sorted({each.raw["reason"] for each in events}))

work = Job(job(), api=api)
work.create()
work.wait("condition=Complete", timeout=30)
report("job", work.status.succeeded)
work.delete(propagation_policy="Background")

object_from_spec(definition(), api=api, allow_unknown_type=True).create()
Gadget = new_class("Gadget", version=f"{GROUP}/v1", namespaced=True, plural="gadgets")
Gadget(gadget(), api=api).create()
report("custom resource", [each.spec.size for each in api.get(Gadget, namespace="default")])

found.delete(propagation_policy="Foreground")
found.wait("delete", timeout=30)
report("deleted", list(api.get("pods", namespace="default", label_selector=f"app={NAME}")))
