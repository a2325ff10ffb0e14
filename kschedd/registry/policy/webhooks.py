"""Validation of ValidatingWebhookConfigurations and MutatingWebhookConfigurations.

Expressions of match conditions are required, but not compiled.
Source: Kubernetes v1.34, pkg/apis/admissionregistration/validation/validation.go, apiserver/pkg/util/webhook.
The functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from kschedd.api.schemas.fields import FieldError, duplicate, invalid, required, too_many, unsupported
from kschedd.api.selecting.names import between, dns1035_label, dns_subdomain, qualified_name
from kschedd.registry.validation_selectors import validate_label_selector

Raw = dict[str, Any]
Faults = list[FieldError]

_VERSIONS: Final = ("v1", "v1beta1")  # versions of AdmissionReview
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_NO_SIDE_EFFECTS: Final = _SIDE_EFFECTS[:2]
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
# allowed values of each field, in upstream's order
_CHOICES: Final[Mapping[str, Sequence[str]]] = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
}
_REINVOCATION: Final = ("IfNeeded", "Never")
_MOST_CONDITIONS: Final = 64
_LONGEST_TIMEOUT_S: Final = 30
_PORT_RANGE: Final = between(1, 65535)
_URL_FORM: Final = "; desired format: https://host[/path]"


def validate_webhooks(item: Raw, faults: Faults) -> None:
    """Append the errors of a new configuration of either kind."""
    _validate_webhooks(item, _NO_SIDE_EFFECTS, faults, known_version=True, unique=True)


def validate_updated_webhooks(item: Raw, old: Mapping[str, Any], faults: Faults) -> None:
    """Append the errors of a changed configuration; newer rules apply only if the old configuration satisfied them."""
    before = old.get("webhooks") or ()
    versions = [hook.get("admissionReviewVersions") or () for hook in before]
    names = [hook.get("name") for hook in before]
    strict = all(hook.get("sideEffects") in _NO_SIDE_EFFECTS for hook in before)
    known = all(not each or any(version in _VERSIONS for version in each) for each in versions)
    allowed = _NO_SIDE_EFFECTS if strict else _SIDE_EFFECTS
    _validate_webhooks(item, allowed, faults, known_version=known, unique=len(set(names)) == len(names))


def _validate_webhooks(
    item: Raw, side_effects: Sequence[str], faults: Faults, *, known_version: bool, unique: bool
) -> None:
    seen: set[str] = set()
    for index, hook in enumerate(item.get("webhooks") or ()):
        here, name = f"webhooks[{index}]", hook.get("name") or ""
        _validate_webhook(hook, here, side_effects, faults)
        _validate_versions(hook.get("admissionReviewVersions") or (), here, faults, known_version=known_version)
        if unique and name in seen:
            faults.append(duplicate(f"{here}.name", name))
        seen.add(name)
        seen.discard("")


def _validate_webhook(hook: Raw, path: str, side_effects: Sequence[str], faults: Faults) -> None:
    _validate_name(hook.get("name") or "", f"{path}.name", faults)
    for index, rule in enumerate(hook.get("rules") or ()):
        validate_rule_with_operations(rule, f"{path}.rules[{index}]", faults)
    for field, allowed in _CHOICES.items():
        value = hook.get(field)
        if value is not None and value not in allowed:
            faults.append(unsupported(f"{path}.{field}", value, allowed))
    effects, timeout = hook.get("sideEffects"), hook.get("timeoutSeconds")
    if effects is None:
        faults.append(required(f"{path}.sideEffects", f"must specify one of {', '.join(side_effects)}"))
    elif effects not in side_effects:
        faults.append(unsupported(f"{path}.sideEffects", effects, side_effects))
    if timeout is not None and not 1 <= timeout <= _LONGEST_TIMEOUT_S:
        why = "the timeout value must be between 1 and 30 seconds"
        faults.append(invalid(f"{path}.timeoutSeconds", timeout, why))
    for field in ("namespaceSelector", "objectSelector"):
        validate_label_selector(hook.get(field), f"{path}.{field}", faults)
    again = hook.get("reinvocationPolicy")
    if again is not None and again not in _REINVOCATION:
        faults.append(unsupported(f"{path}.reinvocationPolicy", again, _REINVOCATION))
    _validate_client(hook.get("clientConfig") or {}, f"{path}.clientConfig", faults)
    validate_match_conditions(hook.get("matchConditions") or (), f"{path}.matchConditions", faults)


def _validate_name(name: str, path: str, faults: Faults) -> None:
    if not name:
        faults.append(required(path))
    elif wrong := dns_subdomain(name):
        faults.append(invalid(path, name, ",".join(wrong)))
    elif name.count(".") < 2:
        why = "should be a domain with at least three segments separated by dots"
        faults.append(invalid(path, name, why))


def _validate_versions(versions: Sequence[str], path: str, faults: Faults, *, known_version: bool) -> None:
    here = f"{path}.admissionReviewVersions"
    if not versions:
        faults.append(required(here, f"must specify one of {', '.join(_VERSIONS)}"))
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            faults.append(invalid(f"{here}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        faults += [invalid(f"{here}[{index}]", version, why) for why in dns1035_label(version)]
    if known_version and not any(version in _VERSIONS for version in versions):
        faults.append(invalid(here, list(versions), f"must include at least one of {', '.join(_VERSIONS)}"))


def validate_match_conditions(conditions: Sequence[Raw], path: str, faults: Faults) -> None:
    """Append the errors of match conditions, except errors in their expressions."""
    if len(conditions) > _MOST_CONDITIONS:
        faults.append(too_many(path, len(conditions), _MOST_CONDITIONS))
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        here, name = f"{path}[{index}]", condition.get("name") or ""
        if not (condition.get("expression") or "").strip():
            faults.append(required(f"{here}.expression"))
        if not name:
            faults.append(required(f"{here}.name"))
            continue
        faults += [invalid(f"{here}.name", name, why) for why in qualified_name(name)]
        if name in seen:
            faults.append(duplicate(f"{here}.name", name))
        seen.add(name)


# rules of a webhook


def validate_rule_with_operations(rule: Raw, path: str, faults: Faults) -> None:
    """Append the errors of the operations and resources that a rule selects."""
    operations = rule.get("operations") or ()
    if not operations:
        faults.append(required(f"{path}.operations"))
    _validate_wildcard(operations, f"{path}.operations", "operations", faults)
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            faults.append(unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS))
    groups, versions, scope = rule.get("apiGroups") or (), rule.get("apiVersions") or (), rule.get("scope")
    if not groups:
        faults.append(required(f"{path}.apiGroups"))
    _validate_wildcard(groups, f"{path}.apiGroups", "API groups", faults)
    if not versions:
        faults.append(required(f"{path}.apiVersions"))
    _validate_wildcard(versions, f"{path}.apiVersions", "API versions", faults)
    faults += [required(f"{path}.apiVersions[{index}]") for index, version in enumerate(versions) if not version]
    _validate_resources(rule.get("resources") or (), f"{path}.resources", faults)
    if scope is not None and scope not in _SCOPES:
        faults.append(unsupported(f"{path}.scope", scope, _SCOPES))


def _validate_wildcard(values: Sequence[str], path: str, called: str, faults: Faults) -> None:
    if len(values) > 1 and "*" in values:
        faults.append(invalid(path, list(values), f"if '*' is present, must not specify other {called}"))


def _validate_resources(resources: Sequence[str], path: str, faults: Faults) -> None:
    if not resources:
        faults.append(required(path))
    all_of: set[str] = set()  # resources that are selected with every subresource
    of_all: set[str] = set()  # subresources that are selected for every resource
    plain = False  # as in upstream, the last resource without a subresource decides
    for index, text in enumerate(resources):
        here = f"{path}[{index}]"
        if not text:
            faults.append(required(here))
            continue
        resource, slash, sub = text.partition("/")
        if not slash:
            plain = text != "*"
            continue
        if resource in all_of:
            faults.append(invalid(here, text, f"if '{resource}/*' is present, must not specify {text}"))
        if sub in of_all:
            faults.append(invalid(here, text, f"if '*/{sub}' is present, must not specify {text}"))
        if sub == "*":
            all_of.add(resource)
        if resource == "*":
            of_all.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        faults.append(invalid(path, list(resources), "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        why = "if '*' is present, must not specify other resources without subresources"
        faults.append(invalid(path, list(resources), why))


# client configuration


def _validate_client(client: Raw, path: str, faults: Faults) -> None:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        faults.append(required(path, "exactly one of url or service is required"))
    elif url is not None:
        _validate_url(url, f"{path}.url", faults)
    elif service is not None:
        _validate_service(service, f"{path}.service", faults)


def _validate_url(text: str, path: str, faults: Faults) -> None:
    url = urlsplit(text)
    if url.scheme != "https":
        faults.append(invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}"))
    user, at, host = url.netloc.rpartition("@")
    if not host:
        faults.append(invalid(path, host, f"host must be specified{_URL_FORM}"))
    if at:
        faults.append(invalid(path, user, "user information is not permitted in the URL"))
    if url.fragment:
        faults.append(invalid(path, url.fragment, "fragments are not permitted in the URL"))
    if url.query:
        faults.append(invalid(path, url.query, "query parameters are not permitted in the URL"))


def _validate_service(service: Raw, path: str, faults: Faults) -> None:
    # Upstream's messages swap name and namespace here.
    if not service.get("namespace"):
        faults.append(required(f"{path}.name"))
    if not service.get("name"):
        faults.append(required(f"{path}.namespace"))
    port, text = service.get("port", 443), service.get("path")
    if not 1 <= port <= 65535:
        faults.append(invalid(f"{path}.port", port, f"port is not valid: {_PORT_RANGE}"))
    if not text or text == "/":
        return
    if text == "//":
        faults.append(invalid(f"{path}.path", text, "segment[0] may not be empty"))
        return
    if not text.startswith("/"):
        faults.append(invalid(f"{path}.path", text, "must start with a '/'"))
    for index, segment in enumerate(text[1:].removesuffix("/").split("/")):
        if not segment:
            faults.append(invalid(f"{path}.path", text, f"segment[{index}] may not be empty"))
            continue
        faults += [invalid(f"{path}.path", text, f"segment[{index}]: {why}") for why in dns_subdomain(segment)]
