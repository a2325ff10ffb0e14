"""Causes of missing pods: rejection by a quota, LimitRange, Pod Security level, class, policy or webhook.

The API server's message names the rejecting object.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import attrs

from kschedd.api.quantity import format_nanos, nanos, style
from kschedd.api.schemas.kinds import lookup
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.demands.amounts import amount, read_amount, rounded_down
from kschedd.causes.findings import (
    ADD_OBJECT,
    CHANGE_OBJECT,
    FoundCause,
    RemedyOption,
    fewer_replicas,
    named,
    spec_edit,
)
from kschedd.causes.near import nearest
from kschedd.causes.steps import created, escaped, patched
from kschedd.causes.strategies import in_place
from kschedd.causes.words import counted, joined
from kschedd.causes.workload import ExaminedWorkload
from kschedd.dumps.dumped_condition import dumped_refusal
from kschedd.store.cluster_api import ClusterWriter

Spec = dict[str, Any]
_SHOWN: Final = 3
QUOTA: Final = re.compile(r"exceeded quota: ([^,]+), requested: (\S+), used: (\S+), limited: (\S+)")
_UNSTATED: Final = re.compile(r"failed quota: ([^:]+): must specify (.+)$")
_BOUND: Final = re.compile(
    r"(maximum|minimum) (\S+) usage per (Container|Pod) is (\S+?)(?:, but (request|limit) is (\S+)|\.)"
)
_RATIO: Final = re.compile(r"(\S+) max limit to request ratio per (Container|Pod) is (\S+), but (.+)")
_DEFAULT_LIMIT: Final = re.compile(r"must be less than or equal to (\S+) limit of (\S+)")
_SECURITY: Final = re.compile(r'violates PodSecurity "([^"]+)": (.+)$', re.DOTALL)
_PRIORITY: Final = re.compile(r"no PriorityClass with name (\S+) was found")
_POLICY: Final = re.compile(r"ValidatingAdmissionPolicy '([^']+)'")
_ACCOUNT: Final = re.compile(r'error looking up service account [^:]+: serviceaccounts? "([^"]+)" not found')
_CLASS_CONFLICT: Final = re.compile(
    r"conflict: runtimeClass\.scheduling\.nodeSelector\[(\S+)\] = (\S*); pod\.spec\.nodeSelector\[\S+\] = (\S*)"
)
_TERMINATING: Final = re.compile(r"unable to create new content in namespace (\S+) because it is being terminated")
_WEBHOOK: Final = re.compile(r'admission webhook "([^"]+)"')
_RUNTIME: Final = re.compile(r'RuntimeClass "?([^" ]+)"? not found|runtimeclass\S* "([^"]+)" not found', re.IGNORECASE)


def refused_in_dump(store: ClusterWriter, workload: ExaminedWorkload) -> FoundCause | None:
    """Return why the dumped cluster rejected the pods; the dump may lack the object that rejects them."""
    why = dumped_refusal(workload.obj)
    return _refused(store, workload, "the cluster of the dump does not create its pods", why) if why else None


def refused(store: ClusterWriter, workload: ExaminedWorkload, missing: int, why: str) -> FoundCause:
    rest = f"{missing} of {counted(workload.wanted, 'replica')} {'is' if missing == 1 else 'are'} not created"
    if not workload.missing:
        rest = f"the rollout cannot make its next pod ({missing} of {counted(workload.wanted, 'replica')} to go)"
    return _refused(store, workload, rest, why)


def _refused(store: ClusterWriter, workload: ExaminedWorkload, rest: str, why: str) -> FoundCause:
    for pattern, tell in (
        (QUOTA, _over_quota),
        (_UNSTATED, _unstated),
        (_BOUND, _out_of_bounds),
        (_RATIO, _above_ratio),
        (_DEFAULT_LIMIT, _above_default),
        (_SECURITY, _insecure),
        (_PRIORITY, _no_priority_class),
        (_RUNTIME, _no_runtime_class),
        (_ACCOUNT, _no_such_account),
        (_CLASS_CONFLICT, _against_runtime_class),
        (_TERMINATING, _terminating),
    ):
        found = pattern.search(why)
        if found is not None:
            return tell(store, workload, rest, found)
    objects = []
    code = "CreationRefused"
    for pattern, kind, its_code in (
        (_POLICY, "ValidatingAdmissionPolicy", "AdmissionPolicyRefuses"),
        (_WEBHOOK, "ValidatingWebhookConfiguration", "WebhookRefuses"),
    ):
        found = pattern.search(why)
        if found is not None:
            objects, code = [ObjectNamed(kind, "", next(filter(None, found.groups())))], its_code
    return FoundCause(code, f"{rest}: {why}", objects, [_path(workload)])


def _path(workload: ExaminedWorkload) -> str:
    return ".".join(workload.path)


def _terminating(store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]) -> FoundCause:
    name = found[1]
    kept = [each for each in store.in_namespace(name) if each.metadata.get("finalizers")]
    kept.sort(key=lambda each: (each.kind, each.name))
    evidence = [
        f"{lookup(each.kind).singular}/{each.name} is kept by the finalizers {joined(each.metadata['finalizers'])}"
        for each in kept[:_SHOWN]
    ]
    return FoundCause(
        "NamespaceTerminating",
        f"namespace {name} is terminating, so nothing is created in it: {rest}",
        [ObjectNamed("Namespace", "", name), *map(named, kept[:_SHOWN])],
        ["metadata.namespace"],
        [*evidence, "next: create the workload in another namespace; a deletion cannot be taken back"],
    )


# -- quotas -----------------------------------------------------------------------------------------------------------


def _amounts(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(","))


def _over_quota(store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]) -> FoundCause:
    quota = over_quota(store, workload, rest, found, workload.missing or 1, len(workload.pods))
    if workload.missing:
        return quota
    # the number of missing pods is unknown if the workload is from a dump
    options = [*in_place(workload), *quota.options[:1]] if workload.outdated else []
    return attrs.evolve(quota, options=options)


def over_quota(
    store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str], missing: int, fits: int
) -> FoundCause:
    """`missing` is the number of objects to create; `fits` is the number of replicas that the quota allows now."""
    name, requested, used, hard = found[1], _amounts(found[2]), _amounts(found[3]), _amounts(found[4])
    parts = [
        f"{resource} {used.get(resource, '0')} of {hard[resource]} used, {requested[resource]} more requested"
        for resource in requested
    ]
    namespace = workload.obj.namespace
    quota = store.find("ResourceQuota", namespace, name)
    options: list[RemedyOption] = []
    if quota is not None:
        # A rollout temporarily needs one additional pod.
        wanted = {resource: _sum(used.get(resource, "0"), requested[resource], missing) for resource in requested}
        operations = [
            {"op": "replace", "path": f"/spec/hard/{escaped(resource)}", "value": value}
            for resource, value in wanted.items()
        ]
        raised = ", ".join(f"{resource} {value}" for resource, value in wanted.items())
        options.append(
            RemedyOption(
                f"raise ResourceQuota {name} to {raised}",
                CHANGE_OBJECT,
                steps=[patched(quota.raw, operations)],
                target=f"resourcequota/{name}",
            )
        )
    options += fewer_replicas(workload, fits)
    return FoundCause(
        "QuotaExceeded",
        f"ResourceQuota {name}: {'; '.join(parts)}: {rest}",
        [ObjectNamed("ResourceQuota", namespace, name)],
        ["spec.replicas", _path(workload)],
        options=options,
    )


def _sum(used: str, each: str, count: int) -> str:
    return format_nanos(nanos(used) + nanos(each) * count, style(used if used != "0" else each))


def _unstated(store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]) -> FoundCause:
    name, what = found[1], found[2]
    unstated: dict[tuple[str, str], None] = {}
    for each in what.split(";"):
        for resource in each.partition(" for: ")[0].split(","):
            which, dot, of = resource.strip().partition(".")
            unstated[(which, of) if dot and which in ("requests", "limits") else ("requests", resource.strip())] = None

    def edit(spec: Spec) -> None:
        for container in spec.get("containers") or ():
            held = container.setdefault("resources", {})
            for which, resource in unstated:
                stated = held.get("limits" if which == "requests" else "requests") or {}
                text = stated.get(resource) or ("128Mi" if resource == "memory" else "100m")
                held.setdefault(which, {}).setdefault(resource, text)

    return FoundCause(
        "QuotaNeedsRequests",
        f"ResourceQuota {name} counts {joined([f'{which}.{resource}' for which, resource in unstated])}, and the pod "
        f"does not state {'it' if len(unstated) == 1 else 'them'}: {rest}",
        [ObjectNamed("ResourceQuota", workload.obj.namespace, name)],
        [f"{_path(workload)}.containers[].resources"],
        options=[RemedyOption("state small requests and limits in the template", edit=spec_edit(edit))],
    )


# -- LimitRanges ------------------------------------------------------------------------------------------------------


def _out_of_bounds(store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]) -> FoundCause:
    way, resource, about, bound, which, stated = found.groups()
    name = _limit_range(store, workload, "max" if way == "maximum" else "min", resource, bound)

    def edit(spec: Spec) -> None:
        for container in spec.get("containers") or ():
            held = container.setdefault("resources", {})
            for part in ("requests", "limits"):
                stated = (held.get(part) or {}).get(resource)
                if stated is None:
                    continue
                if (nanos(stated) > nanos(bound)) if way == "maximum" else (nanos(stated) < nanos(bound)):
                    held[part][resource] = bound
            if which is None or (way == "maximum" and "limits" not in held):
                held.setdefault("limits", {})[resource] = bound

    text = f"the {which} is {stated}" if which else "none is stated"
    return FoundCause(
        "LimitRangeViolated",
        f"LimitRange {name} allows {'at most' if way == 'maximum' else 'at least'} {bound} {resource} per {about}, and "
        f"{text}: {rest}",
        [ObjectNamed("LimitRange", workload.obj.namespace, name)],
        [f"{_path(workload)}.containers[].resources"],
        options=[RemedyOption(f"state {bound} {resource}", edit=spec_edit(edit))]
        if about == "Container"
        else [
            RemedyOption(f"state {bound} {resource} for all containers", edit=spec_edit(_shared(resource, bound, way)))
        ],
    )


def _shared(resource: str, bound: str, way: str) -> Callable[[Spec], None]:
    """Return the edit that changes the sum of all containers' requests and limits to this amount.

    For a maximum, all amounts are lowered by the same share, and limits are set where there are none. For a minimum,
    the first container's amounts are raised.
    """

    def edit(spec: Spec) -> None:
        most = read_amount(resource, bound)
        containers = spec["containers"]
        if way == "minimum":
            held = containers[0].setdefault("resources", {})
            for part in ("requests", "limits"):
                sums = sum(_stated(container, part, resource) for container in containers)
                if sums < most and (part == "requests" or sums):
                    number = _stated(containers[0], part, resource) + most - sums
                    held.setdefault(part, {})[resource] = amount(resource, number)
            return
        if not any(_stated(container, "limits", resource) for container in containers):
            for container in containers:
                limit = amount(resource, rounded_down(resource, most // len(containers)))
                container.setdefault("resources", {}).setdefault("limits", {})[resource] = limit
        for part in ("requests", "limits"):
            stating = [
                held[part]
                for container in spec.get("containers") or ()
                if resource in ((held := container.get("resources") or {}).get(part) or {})
            ]
            together = sum(read_amount(resource, str(held[resource])) for held in stating)
            for given in stating if together > most else ():
                number = read_amount(resource, str(given[resource])) * most // together
                given[resource] = amount(resource, rounded_down(resource, number))

    return edit


def _stated(container: dict[str, Any], part: str, resource: str) -> int:
    text = ((container.get("resources") or {}).get(part) or {}).get(resource)
    return 0 if text is None else read_amount(resource, str(text))


def _above_ratio(store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]) -> FoundCause:
    resource, about, most, why = found.groups()
    name = _limit_range(store, workload, "maxLimitRequestRatio", resource, most)

    def edit(spec: Spec) -> None:
        for container in spec.get("containers") or ():
            held = container.get("resources") or {}
            limit, request = ((held.get(part) or {}).get(resource) for part in ("limits", "requests"))
            if limit is not None and (request is None or nanos(limit) * 10**9 > nanos(request) * nanos(most)):
                least = -(-nanos(limit) * 10**9 // nanos(most))
                whole = 10**6 if resource == "cpu" else 10**9  # millicores, or bytes
                held.setdefault("requests", {})[resource] = format_nanos(-(-least // whole) * whole, style(limit))

    return FoundCause(
        "LimitRangeViolated",
        f"LimitRange {name} allows a {resource} limit of at most {most} times the request per {about}, but {why}: "
        f"{rest}",
        [ObjectNamed("LimitRange", workload.obj.namespace, name)],
        [f"{_path(workload)}.containers[].resources"],
        options=[RemedyOption(f"request enough {resource} for its limit", edit=spec_edit(edit))],
    )


def _limit_range(store: ClusterWriter, workload: ExaminedWorkload, part: str, resource: str, bound: str) -> str:
    """Return the LimitRange of the namespace that specifies this bound, or ""."""
    ranges = store.list("LimitRange", workload.obj.namespace)
    found = [
        each.name
        for each in ranges
        if any(bound == str((limit.get(part) or {}).get(resource)) for limit in each.spec.get("limits") or ())
    ]
    return found[0] if found else ""


def _above_default(store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]) -> FoundCause:
    """Return the cause: a request exceeds the limit that a LimitRange sets for containers without one."""
    resource, bound = found.groups()
    name = _limit_range(store, workload, "default", resource, bound)

    def edit(spec: Spec) -> None:
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            held = container.get("resources") or {}
            stated = (held.get("requests") or {}).get(resource)
            if stated is not None and resource not in (held.get("limits") or {}) and nanos(stated) > nanos(bound):
                held.setdefault("limits", {})[resource] = stated

    return FoundCause(
        "LimitRangeViolated",
        f"LimitRange {name} gives containers a {resource} limit of {bound}, and more is requested: {rest}",
        [ObjectNamed("LimitRange", workload.obj.namespace, name)],
        [f"{_path(workload)}.containers[].resources.limits"],
        options=[RemedyOption(f"state a {resource} limit as large as the request", edit=spec_edit(edit))],
    )


# -- Pod Security -----------------------------------------------------------------------------------------------------


def _insecure(store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]) -> FoundCause:
    level, details = found[1], found[2]
    namespace = workload.obj.namespace

    def edit(spec: Spec) -> None:
        _secured(spec, details)

    return FoundCause(
        "PodSecurityViolated",
        f"namespace {namespace} enforces PodSecurity {level}, which the pod violates: {details}: {rest}",
        [ObjectNamed("Namespace", "", namespace)],
        [f"{_path(workload)}.securityContext", f"{_path(workload)}.containers[].securityContext"],
        options=[RemedyOption(f"meet PodSecurity {level} in the template", edit=spec_edit(edit))],
    )


def _secured(spec: Spec, details: str) -> None:
    """Set the fields that the Pod Security level requires, and remove fields that it forbids."""
    of_pod = spec.setdefault("securityContext", {})
    if "seccompProfile" in details:
        of_pod["seccompProfile"] = {"type": "RuntimeDefault"}
    if "runAsNonRoot" in details:
        of_pod["runAsNonRoot"] = True
    if "runAsUser=0" in details:
        of_pod.pop("runAsUser", None)
    if "host namespaces" in details:
        for field in ("hostNetwork", "hostPID", "hostIPC"):
            spec.pop(field, None)
    for part in ("initContainers", "containers"):
        for container in spec.get(part) or ():
            own = container.setdefault("securityContext", {})
            if "allowPrivilegeEscalation" in details:
                own["allowPrivilegeEscalation"] = False
            if "unrestricted capabilities" in details:
                own["capabilities"] = {"drop": ["ALL"]}
            elif "non-default capabilities" in details:
                own.pop("capabilities", None)
            if "privileged" in details:
                own.pop("privileged", None)
            if "runAsNonRoot" in details and own.get("runAsNonRoot") is False:
                own["runAsNonRoot"] = True
            if "runAsUser=0" in details and own.get("runAsUser") == 0:
                own.pop("runAsUser")
            if "seccompProfile" in details and (own.get("seccompProfile") or {}).get("type") == "Unconfined":
                own.pop("seccompProfile")
            if "hostPort" in details:
                for port in container.get("ports") or ():
                    port.pop("hostPort", None)
            if not own:
                del container["securityContext"]
    if not of_pod:
        del spec["securityContext"]


# -- names of what does not exist -------------------------------------------------------------------------------------


def _no_priority_class(store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]) -> FoundCause:
    wanted = found[1]
    classes = {each.name for each in store.list("PriorityClass")}
    return _missing(
        "PriorityClassMissing",
        "PriorityClass",
        "priorityClassName",
        wanted,
        nearest(wanted, classes),
        workload,
        rest,
        f"there are {joined(sorted(classes))}" if classes else "there is none",
    )


def _no_runtime_class(store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]) -> FoundCause:
    wanted = str(found[1] or found[2])
    classes = sorted(each.name for each in store.list("RuntimeClass"))
    likely = nearest(wanted, classes) or (classes[0] if len(classes) == 1 else None)
    return _missing(
        "RuntimeClassMissing",
        "RuntimeClass",
        "runtimeClassName",
        wanted,
        likely,
        workload,
        rest,
        f"there {'is' if len(classes) == 1 else 'are'} {joined(classes)}" if classes else "there is none",
    )


def _against_runtime_class(
    store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]
) -> FoundCause:
    key, required, selected = found.groups()
    name = str(workload.pod_spec.get("runtimeClassName"))

    def edit(spec: Spec) -> None:
        spec["nodeSelector"].pop(key)

    return FoundCause(
        "NodeAffinityContradiction",
        f"RuntimeClass {name} requires `{key}={required}`, and the pod selects `{key}={selected}`: {rest}",
        [ObjectNamed("RuntimeClass", "", name)],
        [f"{_path(workload)}.nodeSelector[{key}]", f"{_path(workload)}.runtimeClassName"],
        options=[RemedyOption(f"do not require {key}={selected}", edit=spec_edit(edit))],
    )


def _no_such_account(store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str]) -> FoundCause:
    accounts = {each.name for each in store.list("ServiceAccount", workload.obj.namespace)}
    return _account_missing(workload, found[1], accounts, rest)


def _account_missing(workload: ExaminedWorkload, wanted: str, accounts: set[str], rest: str) -> FoundCause:
    likely = nearest(wanted, accounts - {"default"})
    finding = _missing(
        "ServiceAccountMissing",
        "ServiceAccount",
        "serviceAccountName",
        wanted,
        likely,
        workload,
        rest,
        f"there {'is' if len(accounts) == 1 else 'are'} {joined(sorted(accounts))}" if accounts else "",
    )
    if likely is not None:
        return finding
    meta = {"name": wanted, "namespace": workload.obj.namespace}
    made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    create = RemedyOption(
        f"create ServiceAccount {wanted}", ADD_OBJECT, steps=[created(made)], target=f"serviceaccount/{wanted}"
    )
    return FoundCause(finding.code, finding.message, finding.objects, finding.fields, finding.evidence, [create])


def _missing(
    code: str,
    kind: str,
    field: str,
    wanted: str,
    likely: str | None,
    workload: ExaminedWorkload,
    rest: str,
    there: str,
) -> FoundCause:
    namespace = workload.obj.namespace if kind == "ServiceAccount" else ""
    hint = f" ({likely} does)" if likely else ""

    def renamed(spec: Spec) -> None:
        spec[field] = likely
        if kind == "ServiceAccount" and "serviceAccount" in spec:
            spec["serviceAccount"] = likely

    def without(spec: Spec) -> None:
        spec.pop(field)

    option = RemedyOption(f"use {kind} {likely}", edit=spec_edit(renamed))
    if likely is None:
        option = RemedyOption(f"name no {kind}", edit=spec_edit(without))
    return FoundCause(
        code,
        f"{kind} {wanted} does not exist{hint}: {rest}",
        [ObjectNamed(kind, namespace, wanted), *([ObjectNamed(kind, namespace, likely)] if likely else [])],
        [f"{_path(workload)}.{field}"],
        [there] if there else [],
        [option],
    )
