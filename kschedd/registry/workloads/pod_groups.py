"""Validation of Workload and PodGroup (scheduling.k8s.io/v1alpha2), with the messages of kube-apiserver 1.36.

The specs must have correct types, and their templates must have unique names. Changes are not checked here, because the
schemas make all fields immutable. An absent number is treated as 0 and an absent text as "", so a gang of 0 pods is
treated as a gang without a number.

Source: Kubernetes v1.36, apis/scheduling/validation, apis/scheduling/v1alpha2/zz_generated.validations.go;
apimachinery/pkg/api/validate (Union, RequiredValue, Minimum, the formats of names).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required, too_many
from kschedd.api.selecting.names import dns_label, dns_subdomain, path_segment

Raw = Mapping[str, Any]

MOST_TEMPLATES: Final = 8
POLICIES: Final = ("basic", "gang")


def validate_pod_group(spec: Raw) -> list[FieldError]:
    faults = list(policy_faults(spec.get("schedulingPolicy") or {}, "spec.schedulingPolicy"))
    reference = spec.get("podGroupTemplateRef")
    if reference is not None:
        faults += _template_reference(reference, "spec.podGroupTemplateRef")
    return faults


def validate_workload(spec: Raw) -> list[FieldError]:
    faults: list[FieldError] = []
    if (controller := spec.get("controllerRef")) is not None:
        faults += controller_faults(controller, "spec.controllerRef")
    templates, path = spec.get("podGroupTemplates") or [], "spec.podGroupTemplates"
    if not templates:
        return [*faults, required(path, "must have at least one item")]
    if len(templates) > MOST_TEMPLATES:
        return [*faults, too_many(path, len(templates), MOST_TEMPLATES)]
    for number, template in enumerate(templates):
        at = f"{path}[{number}]"
        faults += name_faults(template.get("name") or "", f"{at}.name", dns_label)
        faults += policy_faults(template.get("schedulingPolicy") or {}, f"{at}.schedulingPolicy")
    return faults


def one_of_faults(value: Raw, names: Sequence[str], path: str) -> Iterator[FieldError]:
    """Yield errors unless exactly one of these fields is set."""
    given = [f"`{name}`" for name in names if value.get(name) is not None]
    known = ", ".join(f"`{name}`" for name in names)
    if not given:
        yield invalid(path, "", f"must specify one of: {known}")
    elif len(given) > 1:
        yield invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {known}")


def policy_faults(policy: Raw, path: str) -> Iterator[FieldError]:
    yield from one_of_faults(policy, POLICIES, path)
    gang = policy.get("gang")
    if gang is None:
        return
    least = gang.get("minCount") or 0
    if not least:
        yield required(f"{path}.gang.minCount")
    elif least < 0:
        yield invalid(f"{path}.gang.minCount", least, "must be greater than or equal to 1")


def _template_reference(reference: Raw, path: str) -> Iterator[FieldError]:
    workload = reference.get("workload")
    if workload is None:
        yield invalid(path, "", "must specify one of: `workload`")
        return
    yield from name_faults(workload.get("workloadName") or "", f"{path}.workload.workloadName", dns_subdomain)
    yield from name_faults(
        workload.get("podGroupTemplateName") or "", f"{path}.workload.podGroupTemplateName", dns_label
    )


def controller_faults(controller: Raw, path: str) -> Iterator[FieldError]:
    if group := controller.get("apiGroup"):
        yield from name_faults(group, f"{path}.apiGroup", dns_subdomain)
    for field in ("kind", "name"):
        yield from name_faults(controller.get(field) or "", f"{path}.{field}", path_segment)


def name_faults(name: str, path: str, check: Callable[[str], Sequence[str]]) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    for why in check(name) if name else ():
        yield invalid(path, name, why)
