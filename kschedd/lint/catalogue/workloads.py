"""Rules about workloads, budgets, priorities, autoscalers, PodGroups, namespaces and annotations."""

from collections.abc import Iterator
from typing import Final

from kschedd.lint.catalogue.pods import SYSTEM_CLASSES
from kschedd.lint.catalogue.spreading import is_empty_selector
from kschedd.lint.rules import PODS, Hit, RuleSet
from kschedd.lint.subjects import KnownObjects, LintedObject, PodPart, Raw, at, entries, selects, text_of
from kschedd.values import as_map

RULES: Final = RuleSet()
_BUDGET: Final = "PodDisruptionBudget"


@RULES.add(
    "sts-max-unavailable",
    "StatefulSet",
    ("", "warning", "the API server drops maxUnavailable, and pods are replaced one by one"),
    ("1.35", "fine", "maxUnavailable is used"),
    ("1.36", "warning", "maxUnavailable is off by default, and pods are replaced one by one"),
    ("1.37", "fine", "maxUnavailable is used"),
    fix="Enable the feature gate MaxUnavailableStatefulSet, or expect one pod at a time.",
    source="kubernetes#133153, kubernetes#137904, kubernetes#139466",
)
def sts_max_unavailable(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if at(found.spec, "updateStrategy", "rollingUpdate", "maxUnavailable") not in (None, 1):
        yield Hit(("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"))


@RULES.add(
    "sts-recreate",
    "StatefulSet",
    ("", "error", "the update strategy Recreate is rejected: RollingUpdate and OnDelete are allowed"),
    ("1.37", "error", "the update strategy Recreate is rejected unless its feature gate (alpha) is on"),
    fix="Use RollingUpdate or OnDelete.",
    source="kubernetes#137187",
)
def sts_recreate(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if at(found.spec, "updateStrategy", "type") == "Recreate":
        yield Hit(("spec", "updateStrategy", "type"))


@RULES.add(
    "suspended-job-directives",
    "Job",
    ("", "fine", "scheduling directives of a suspended Job may be changed before its first start only"),
    ("1.36", "fine", "scheduling directives of a suspended Job may be changed at any time"),
    fix="Nothing has to change.",
    source="kubernetes#135104, kubernetes#135965, kubernetes#139287",
)
def suspended_job_directives(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.spec.get("suspend") is True:
        for field in ("nodeSelector", "affinity", "tolerations", "schedulingGates"):
            if at(found.spec, "template", "spec", field):
                yield Hit(("spec", "template", "spec", field))


@RULES.add(
    "hpa-zero",
    "HorizontalPodAutoscaler",
    ("", "error", "minReplicas 0 is rejected without the feature gate HPAScaleToZero"),
    ("1.37", "fine", "minReplicas 0 is allowed with an object or external metric"),
    fix="Use at least 1.",
    source="kubernetes#139648",
)
def hpa_zero(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.spec.get("minReplicas") == 0 and found.spec.get("minReplicas") is not False:
        yield Hit(("spec", "minReplicas"))


@RULES.add(
    "hpa-tolerance",
    "HorizontalPodAutoscaler",
    ("", "warning", "the API server drops tolerance"),
    ("1.35", "fine", "tolerance is used"),
    fix="Upgrade, or remove the field.",
    source="kubernetes#130797, kubernetes#133128",
)
def hpa_tolerance(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    for side in ("scaleUp", "scaleDown"):
        if at(found.spec, "behavior", side, "tolerance") is not None:
            yield Hit(("spec", "behavior", side, "tolerance"))


# -- budgets -----------------------------------------------------------------------------------------------------


@RULES.add(
    "pdb-empty-selector",
    _BUDGET,
    ("", "warning", "this budget guards all pods of the namespace against evictions, but preemption ignores it"),
    ("1.38", "note", "this budget guards all pods of the namespace, also against preemption"),
    fix="Select the intended pods.",
    source="kubernetes#141785",
)
def pdb_empty_selector(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if is_empty_selector(found.spec.get("selector")):
        yield Hit(("spec", "selector"))


@RULES.add(
    "pdb-nil-selector",
    _BUDGET,
    ("", "warning", "without selector the budget guards no pod"),
    fix="Select the intended pods.",
    source="policy/v1 types",
)
def pdb_nil_selector(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.spec.get("selector") is None:
        yield Hit(("spec",))


@RULES.add(
    "minavailable-and-max",
    _BUDGET,
    ("", "error", "minAvailable and maxUnavailable exclude each other: the budget is rejected"),
    fix="Keep one of the two.",
    source="policy/v1 validation",
)
def minavailable_and_max(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.spec.get("minAvailable") is not None and found.spec.get("maxUnavailable") is not None:
        yield Hit(("spec", "maxUnavailable"))


@RULES.add(
    "pdb-never-allows",
    _BUDGET,
    ("", "warning", "{}: no pod may ever be evicted, and draining its node does not end"),
    fix="Require at most one pod less than there are replicas.",
    source="policy/v1 types",
)
def pdb_never_allows(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    most, least = found.spec.get("maxUnavailable"), found.spec.get("minAvailable")
    if most in (0, "0", "0%") and most is not False:
        yield Hit(("spec", "maxUnavailable"), f"maxUnavailable is {most}")
        return
    if least == "100%":
        yield Hit(("spec", "minAvailable"), "minAvailable is 100%")
        return
    pods = _guarded(found, known)
    replicas = [pod.replicas for pod in pods]
    if isinstance(least, int) and least > 0 and pods and all(number is not None for number in replicas):
        if least >= (total := sum(number or 0 for number in replicas)) > 0:
            counted = f"{total} {'replica' if total == 1 else 'replicas'}"
            yield Hit(("spec", "minAvailable"), f"minAvailable is {least}, and the selected pods are {counted}")


@RULES.add(
    "pdb-matches-nothing",
    _BUDGET,
    ("", "warning", "no pod matches this selector, so the budget guards nothing"),
    fix="Correct the selector, or remove the budget.",
    source="policy/v1 types",
)
def pdb_matches_nothing(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    selector = found.spec.get("selector")
    if known.lists("Pod") and isinstance(selector, dict) and not is_empty_selector(selector):
        if not _guarded(found, known):
            yield Hit(("spec", "selector"))


def _guarded(budget: LintedObject, known: KnownObjects) -> list[PodPart]:
    selector = as_map(budget.spec.get("selector"))
    return known.selected(selector, budget.namespace) if selector else []


# -- priorities ----------------------------------------------------------------------------------------------------


@RULES.add(
    "priority-two-defaults",
    "PriorityClass",
    ("", "warning", "several classes are the global default ({}): the one with the smallest value counts"),
    fix="Keep globalDefault in one class.",
    source="scheduling/v1 types",
)
def priority_two_defaults(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    defaults = known.once(
        "default priority classes",
        lambda: [each.name for each in known.of("PriorityClass") if each.raw.get("globalDefault") is True],
    )
    if found.raw.get("globalDefault") is True and len(defaults) > 1:
        yield Hit(("globalDefault",), ", ".join(sorted(defaults)))


@RULES.add(
    "priority-class-missing",
    PODS,
    ("", "error", "the PriorityClass {} does not exist, and the pods are rejected"),
    fields="priorityClassName",
    fix="Create the class, or correct its name.",
    source="plugin/pkg/admission/priority",
)
def priority_class_missing(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    name = text_of(pod.spec.get("priorityClassName"))
    if (
        known.lists("PriorityClass")
        and name
        and name not in SYSTEM_CLASSES
        and known.find("PriorityClass", "default", name) is None
    ):
        yield Hit(("priorityClassName",), name)


# -- PodGroups and workloads ------------------------------------------------------------------------------------------


def _versions(code: str, version: str, eras: tuple[tuple[str, str, str], ...], fix: str, source: str) -> None:
    def check(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
        if found.api_version == f"scheduling.k8s.io/{version}":
            yield Hit(("apiVersion",))

    RULES.add(code, ("Workload", "PodGroup"), *eras, fix=fix, source=source)(check)  # type: ignore[arg-type]


_versions(
    "workload-v1alpha1",
    "v1alpha1",
    (
        ("", "error", "scheduling.k8s.io/v1alpha1 has no Workload"),
        ("1.35", "note", "scheduling.k8s.io/v1alpha1 is served in this release only"),
        ("1.36", "error", "scheduling.k8s.io/v1alpha1 does not serve it"),
    ),
    "Write v1alpha2 in 1.36, and v1beta1 from 1.37 on; enable this version in the API server.",
    "kubernetes#136976",
)
_versions(
    "workload-v1alpha2",
    "v1alpha2",
    (
        ("", "error", "scheduling.k8s.io/v1alpha2 is not served"),
        ("1.36", "note", "scheduling.k8s.io/v1alpha2 is served in this release only"),
        ("1.37", "error", "scheduling.k8s.io/v1alpha2 is not served"),
    ),
    "Write v1beta1, which the API server serves with --runtime-config and the gate GenericWorkload. "
    "`disruptionMode: PodGroup` becomes `{all: {}}`, and `Pod` becomes `{single: {}}`. Delete stored objects before "
    "the upgrade, and create them again.",
    "kubernetes#138572, kubernetes#140184",
)


@RULES.add(
    "podgroup-template-ref",
    "PodGroup",
    ("", "fine", "podGroupTemplateRef names the template"),
    ("1.37", "error", "the field podGroupTemplateRef is called workloadRef, and this one is dropped"),
    fix="Write `workloadRef: {workloadName: W, templateName: T}`: it has no field `workload`, "
    "and podGroupTemplateName is called templateName.",
    source="kubernetes#140080",
)
def podgroup_template_ref(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.spec.get("podGroupTemplateRef") is not None:
        yield Hit(("spec", "podGroupTemplateRef"))


# -- annotations and versions ---------------------------------------------------------------------------------------


def _annotation(code: str, kind: str, key: str, says: str, fix: str, source: str) -> None:
    def check(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
        if key in found.annotations:
            yield Hit(("metadata", "annotations", key))

    RULES.add(code, kind, ("", "warning", says), fix=fix, source=source)(check)


_annotation(
    "avoid-pods",
    "Node",
    "scheduler.alpha.kubernetes.io/preferAvoidPods",
    "no plugin reads the annotation preferAvoidPods any more",
    "Use a taint with PreferNoSchedule.",
    "notes of 1.24",
)
_annotation(
    "ns-node-selector",
    "Namespace",
    "scheduler.alpha.kubernetes.io/node-selector",
    "only the admission plugin PodNodeSelector reads this annotation, and it is off by default",
    "Enable the plugin, or add the nodeSelector to the workloads.",
    "admission controllers reference",
)
_annotation(
    "ns-default-tolerations",
    "Namespace",
    "scheduler.alpha.kubernetes.io/defaultTolerations",
    "only the admission plugin PodTolerationRestriction reads this annotation, and it is off by default",
    "Enable the plugin, or add the tolerations to the workloads.",
    "admission controllers reference",
)


@RULES.add(
    "flow-v1beta3",
    ("FlowSchema", "PriorityLevelConfiguration"),
    ("", "note", "{} is deprecated"),
    ("1.32", "error", "{} is not served"),
    fix="Use flowcontrol.apiserver.k8s.io/v1.",
    source="notes of 1.32",
)
def flow_v1beta3(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.api_version.startswith("flowcontrol.apiserver.k8s.io/v1beta"):
        yield Hit(("apiVersion",), found.api_version)


# Other versions that none of the listed releases serves: the release that removed them, their replacement, the version
# and the kinds. Source: kubernetes.io/docs/reference/using-api/deprecation-guide
_ADMISSION: Final = "admissionregistration.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_ENDED: Final = (
    ("1.16", "apps/v1", "extensions/v1beta1", "DaemonSet Deployment ReplicaSet"),
    ("1.16", "apps/v1", "apps/v1beta1", "Deployment StatefulSet"),
    ("1.16", "apps/v1", "apps/v1beta2", "DaemonSet Deployment ReplicaSet StatefulSet"),
    ("1.16", "networking.k8s.io/v1", "extensions/v1beta1", "NetworkPolicy"),
    ("1.21", "batch/v1", "batch/v2alpha1", "CronJob"),
    ("1.22", "networking.k8s.io/v1", "extensions/v1beta1", "Ingress"),
    ("1.22", "networking.k8s.io/v1", "networking.k8s.io/v1beta1", "Ingress IngressClass"),
    (
        "1.22",
        f"{_ADMISSION}/v1",
        f"{_ADMISSION}/v1beta1",
        "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    ),
    ("1.22", "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"),
    ("1.22", "apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1beta1", "APIService"),
    ("1.22", "certificates.k8s.io/v1", "certificates.k8s.io/v1beta1", "CertificateSigningRequest"),
    ("1.22", "coordination.k8s.io/v1", "coordination.k8s.io/v1beta1", "Lease"),
    ("1.22", f"{_RBAC}/v1", f"{_RBAC}/v1beta1", "ClusterRole ClusterRoleBinding Role RoleBinding"),
    ("1.22", "scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1", "PriorityClass"),
    ("1.22", "storage.k8s.io/v1", "storage.k8s.io/v1beta1", "CSIDriver CSINode StorageClass VolumeAttachment"),
    ("1.25", "autoscaling/v2", "autoscaling/v2beta1", "HorizontalPodAutoscaler"),
    ("1.25", "batch/v1", "batch/v1beta1", "CronJob"),
    ("1.25", "discovery.k8s.io/v1", "discovery.k8s.io/v1beta1", "EndpointSlice"),
    ("1.25", "node.k8s.io/v1", "node.k8s.io/v1beta1", "RuntimeClass"),
    ("1.25", "policy/v1", "policy/v1beta1", _BUDGET),
    ("1.26", "autoscaling/v2", "autoscaling/v2beta2", "HorizontalPodAutoscaler"),
    ("1.27", "storage.k8s.io/v1", "storage.k8s.io/v1beta1", "CSIStorageCapacity"),
)
_GONE_VERSIONS: Final = {
    (version, kind): (since, instead) for since, instead, version, kinds in _ENDED for kind in kinds.split()
}
_GONE_KINDS: Final = frozenset(kind for _, kind in _GONE_VERSIONS)
# Changes that the later version requires besides the apiVersion; by version ("": all versions) and kind.
_OF_WEBHOOKS: Final = "set sideEffects and admissionReviewVersions in each of webhooks[]"
_CHANGES: Final = {
    ("", "CertificateSigningRequest"): "set spec.signerName and spec.usages",
    ("", "MutatingWebhookConfiguration"): _OF_WEBHOOKS,
    ("", "ValidatingWebhookConfiguration"): _OF_WEBHOOKS,
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler"): (
        "write `target: {type: Utilization, averageUtilization: N}` in spec.metrics[].resource"
    ),
    ("discovery.k8s.io/v1beta1", "EndpointSlice"): "write endpoints[].zone and nodeName in place of topology",
}
_DEFAULT_BACKEND: Final = (
    "write `defaultBackend: {service: {name: NAME, port: {number: PORT}}}` in place of spec.backend"
)
_PATHS: Final = (
    "set pathType in spec.rules[].http.paths[], and write `backend: {service: {name: NAME, port: {number: PORT}}}`"
)
_WITH_SELECTOR: Final = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")


def _changes(found: LintedObject) -> list[str]:
    """Return the changes that the later version of the object's kind requires."""
    if found.kind in _WITH_SELECTOR:
        return [] if found.spec.get("selector") else ["set spec.selector to the labels of the template"]
    if found.kind == "HorizontalPodAutoscaler" and not found.spec.get("metrics"):
        return []
    if found.kind == "Ingress":
        fields = {"backend": _DEFAULT_BACKEND, "rules": _PATHS}
        return [text for field, text in fields.items() if found.spec.get(field)]
    if found.kind == "CustomResourceDefinition":
        return list(_changes_of_definition(found))
    change = _CHANGES.get((found.api_version, found.kind)) or _CHANGES.get(("", found.kind))
    return [] if change is None else [change]


def _changes_of_definition(found: LintedObject) -> Iterator[str]:
    versions = [version for _, version in entries(found.spec, "versions")]
    if not versions:
        yield "write `versions: [{name, served: true, storage: true, schema}]` in place of spec.version"
    elif found.spec.get("version"):
        yield "remove spec.version"
    moved = [field for field in ("validation", "subresources", "additionalPrinterColumns") if found.spec.get(field)]
    if moved:
        yield f"move spec.{', spec.'.join(moved)} into each version (validation becomes schema)"
    schemas = [at(version, "schema", "openAPIV3Schema") for version in versions]
    if not found.spec.get("validation") and not (schemas and all(schemas)):
        yield (
            "write a schema (openAPIV3Schema) for each version: `type: object` alone drops all fields, unless "
            "`x-kubernetes-preserve-unknown-fields: true` is set"
        )


@RULES.add(
    "version-gone",
    sorted(_GONE_KINDS),
    ("", "error", "{}"),
    fix="Write the later version, and change the fields that differ.",
    source="deprecated API migration guide",
)
def version_gone(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    gone = _GONE_VERSIONS.get((found.api_version, found.kind))
    if gone is not None:
        since, instead = gone
        fix = ". ".join(text[0].upper() + text[1:] for text in (f"write apiVersion: {instead}", *_changes(found)))
        yield Hit(("apiVersion",), f"{found.api_version} of {found.kind} is not served since {since}", fix=f"{fix}.")


@RULES.add(
    "psp-gone",
    "PodSecurityPolicy",
    ("", "error", "PodSecurityPolicies are not served since 1.25, and no later version replaces them"),
    fix="Remove it, and set the label pod-security.kubernetes.io/enforce on the namespaces (Pod Security admission).",
    source="deprecated API migration guide",
)
def psp_gone(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if found.api_version in ("policy/v1beta1", "extensions/v1beta1"):
        yield Hit(("apiVersion",))


@RULES.add(
    "hpa-target-gone",
    "HorizontalPodAutoscaler",
    ("", "error", "no {} is served, so the autoscaler does not find its target"),
    fix="Write the apiVersion of the target, such as apps/v1, in scaleTargetRef.",
    source="controller/podautoscaler (RESTMappings of the target's group and kind)",
)
def hpa_target_gone(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    kind, version = at(found.spec, "scaleTargetRef", "kind"), at(found.spec, "scaleTargetRef", "apiVersion")
    # The controller reads only the group: it finds a Deployment of apps/v1 under apps/v1beta1.
    if kind in ("Deployment", "ReplicaSet", "StatefulSet") and version in (None, "", "v1"):
        yield Hit(("spec", "scaleTargetRef"), f"{kind} of the core group")
    elif kind in ("Deployment", "ReplicaSet") and text_of(version).startswith("extensions/"):
        yield Hit(("spec", "scaleTargetRef", "apiVersion"), f"{kind} of {version}")


@RULES.add(
    "selector-misses-template",
    ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"),
    ("", "error", "the selector does not match the labels of the template, and the object is rejected"),
    fix="Use the same labels in spec.selector and in spec.template.metadata.",
    source="apps/v1 validation",
)
def selector_misses_template(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    selector = found.spec.get("selector")
    labels: Raw = found.pod.labels if found.pod is not None else {}
    if isinstance(selector, dict) and labels and found.api_version == "apps/v1" and not selects(selector, labels):
        yield Hit(("spec", "selector"))


@RULES.add(
    "sts-service-missing",
    "StatefulSet",
    ("", "note", "the Service {} does not exist, so the pods have no names in DNS"),
    fix="Create a headless Service with this name.",
    source="apps/v1 types",
)
def sts_service_missing(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    name = text_of(found.spec.get("serviceName"))
    if known.lists("Service") and name and known.find("Service", found.namespace, name) is None:
        yield Hit(("spec", "serviceName"), name)


@RULES.add(
    "claim-missing",
    PODS,
    ("", "error", "the PersistentVolumeClaim {} does not exist, so the pod stays pending"),
    fields="volumes",
    fix="Create the claim in the namespace of the pod, or correct its name.",
    source="scheduler/framework/plugins/volumebinding",
)
def claim_missing(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, volume in entries(pod.spec, "volumes") if known.lists("PersistentVolumeClaim") else ():
        name = text_of(at(volume, "persistentVolumeClaim", "claimName"))
        if name and known.find("PersistentVolumeClaim", pod.namespace, name) is None:
            yield Hit((*path, "persistentVolumeClaim", "claimName"), name)
