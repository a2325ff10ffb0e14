"""PodSecurity: a namespace's labels select the Pod Security Standards for its pods.

`pod-security.kubernetes.io/enforce` rejects pods that violate the level. `warn` returns warnings for pods that violate
the level, and for workloads whose pod template violates it. In a namespace without these labels the level is
privileged, which allows everything. `audit` has no effect, because kschedd has no audit log.
Source: Kubernetes v1.34, staging/src/k8s.io/pod-security-admission/admission/admission.go, api/helpers.go. Raises:
Forbidden; Invalid if a namespace's label contains an unknown level.
"""

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.schemas.fields import FieldError, invalid
from kschedd.api.schemas.kinds import POD_TEMPLATES
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.admission_plugins.podsecurity_checks import LATEST, Finding, Level, Minor, findings
from kschedd.store.errors import Forbidden, Invalid

PREFIX: Final = "pod-security.kubernetes.io/"
_LEVELS: Final[Mapping[str, Level]] = {
    "privileged": "privileged",
    "baseline": "baseline",
    "restricted": "restricted",
}
_STRICTNESS: Final = ("privileged", "baseline", "restricted")
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)")
_MOST_PODS: Final = 3000
_SKIPPED: Final = frozenset(("binding", "eviction", "log", "status"))


@attrs.frozen
class PolicyLevel:
    """A level of the Pod Security Standards as defined by one Kubernetes version."""

    level: Level = "privileged"
    minor: Minor = LATEST
    latest: bool = True

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.latest else f'v1.{self.minor}'}"

    def findings(self, spec: Raw) -> list[Finding]:
        return findings(spec, self.level, min(self.minor, LATEST))


@attrs.frozen
class Policy:
    """The Pod Security levels that a namespace's labels select.

    An `enforce` label that cannot be parsed selects the level restricted; such a `warn` label produces no warnings.
    """

    enforce: PolicyLevel
    warn: PolicyLevel
    faults: tuple[FieldError, ...] = ()


def policy_of(labels: Mapping[str, Any]) -> Policy:
    faults: list[FieldError] = []
    modes = {mode: _mode(labels, mode, faults) for mode in ("enforce", "audit", "warn")}
    return Policy(modes["enforce"], modes["warn"], tuple(faults))


def _mode(labels: Mapping[str, Any], mode: str, faults: list[FieldError]) -> PolicyLevel:
    found = PolicyLevel()
    key = PREFIX + mode
    if (text := labels.get(key)) is not None:
        level = _LEVELS.get(text)
        if level is None:
            why = "must be one of privileged, baseline, restricted"
            faults.append(invalid(f"metadata.labels[{key}]", text, why))
            level = "restricted" if mode == "enforce" else "privileged"
        found = attrs.evolve(found, level=level)
    key += "-version"
    if (text := labels.get(key)) not in (None, "latest"):
        version = _VERSION.fullmatch(str(text))
        if version is None:
            faults.append(invalid(f"metadata.labels[{key}]", text, 'must be "latest" or "v1.x"'))
        else:
            found = attrs.evolve(found, minor=int(version[1]), latest=False)
    return found


def scope(namespace: str, classes: Classes) -> Hashable:
    found = classes.find("Namespace", "", namespace)
    if found is None:
        return None
    stated = [item for item in found.labels.items() if item[0].startswith(PREFIX)]
    return tuple(sorted(stated)) if stated else None


def validate(attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> Sequence[str]:
    """Return the warnings. Raises Forbidden."""
    if attributes.kind == "Namespace":
        return _namespace(attributes, raw, old, classes)
    found = classes.find("Namespace", "", attributes.namespace)
    labels = _NOTHING if found is None else found.labels
    if not any(key.startswith(PREFIX) for key in labels):
        return ()
    policy = policy_of(labels)
    if attributes.kind != "Pod":
        return _workload(attributes, raw, policy)
    if attributes.subresource in _SKIPPED or (old is not None and not _significant(raw, old)):
        return ()
    if wrong := policy.enforce.findings(raw["spec"]):
        raise Forbidden("Pod", attributes.name, f'violates PodSecurity "{policy.enforce}": {_details(wrong)}')
    return _warnings(policy, raw["spec"])


_NOTHING: Mapping[str, str] = {}


def _workload(attributes: Attributes, raw: Raw, policy: Policy) -> Sequence[str]:
    if attributes.subresource:
        return ()
    template: Any = raw
    for name in POD_TEMPLATES[attributes.kind]:
        template = (template or {}).get(name)
    spec = (template or {}).get("spec")
    return _warnings(policy, spec) if spec else ()


def _warnings(policy: Policy, spec: Raw) -> Sequence[str]:
    wrong = policy.warn.findings(spec)
    return (f'would violate PodSecurity "{policy.warn}": {_details(wrong)}',) if wrong else ()


def _details(wrong: Sequence[Finding]) -> str:
    return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in wrong)


def _significant(raw: Raw, old: Raw) -> bool:
    """Return whether an update changes images or adds containers, which requires a new check of the standards."""

    def seen(pod: Raw) -> list[Any]:
        fields = ("containers", "initContainers", "ephemeralContainers")
        looked_at = ("name", "image", "securityContext")
        return [[[each.get(name) for name in looked_at] for each in pod["spec"].get(field) or ()] for field in fields]

    return seen(raw) != seen(old)


def _namespace(attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> Sequence[str]:
    new = policy_of((raw.get("metadata") or {}).get("labels") or {})
    if old is None:
        if new.faults:
            raise Invalid("Namespace", attributes.name, new.faults)
        return ()
    before = policy_of((old.get("metadata") or {}).get("labels") or {})
    if new.faults and list(map(str, new.faults)) != list(map(str, before.faults)):
        raise Invalid("Namespace", attributes.name, new.faults)
    is_same = (new.enforce.minor, new.enforce.latest) == (before.enforce.minor, before.enforce.latest)
    is_laxer = _STRICTNESS.index(new.enforce.level) <= _STRICTNESS.index(before.enforce.level)
    if attributes.subresource or new.enforce.level == "privileged" or (is_same and is_laxer):
        return ()
    return _existing(attributes.name, new.enforce, classes)


def _existing(namespace: str, enforced: PolicyLevel, classes: Classes) -> Sequence[str]:
    """Return warnings about existing pods that violate the new `enforce` level of their namespace."""
    pods = classes.list("Pod", namespace)
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for pod in pods[:_MOST_PODS]:
        if wrong := enforced.findings(pod.spec):
            reasons = ", ".join(reason for reason, _ in wrong)
            counts[reasons] += 1
            first.setdefault(reasons, pod.name)
    warnings = []
    if len(pods) > _MOST_PODS:
        checked = f"the first {_MOST_PODS} of {len(pods)} existing pods"
        warnings.append(f"new PodSecurity enforce level only checked against {checked}")
    if counts:
        warnings.append(
            f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{enforced}"'
        )
    return [*warnings, *sorted(f"{_pods(first[reasons], count)}: {reasons}" for reasons, count in counts.items())]


def _pods(first: str, count: int) -> str:
    others = {1: "", 2: " (and 1 other pod)"}.get(count, f" (and {count - 1} other pods)")
    return f"{first}{others}"
