"""Admission: the API server's chain of plugins, each enabled or disabled by configuration.

The chain runs in this order:

    authorize         a plugin may reject the request because of its user; runs for every request
    admit             each plugin may change the object
                      (then the store validates the object)
    validate          each plugin may reject the object or warn about it
    validate_whole    the plugins from plugin files may reject the write
    charges           the object is counted against the quotas of its namespace

A built-in plugin is a pure function: its result depends only on the request, the object and the cluster objects that it
reads. The result for a pod is cached by its spec and its `scope` (the parts of its namespace that the plugins read),
until a PriorityClass or RuntimeClass changes. Most namespaces contain no object or annotation that the plugins read.
The store itself enforces NamespaceLifecycle (the namespace must exist).

Source: Kubernetes v1.34, pkg/kubeapiserver/options/plugins.go (order, default state).
Raises: Forbidden and AdmissionError, with the message of the upstream plugin.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.schemas.kinds import POD_TEMPLATES
from kschedd.errors import KscheddError
from kschedd.store.admission_plugins import (
    antiaffinity,
    defaulttolerationseconds,
    extendedresourcetoleration,
    limitranger,
    noderestriction,
    nodetaint,
    podnodeselector,
    podpriority,
    podsecurity,
    podtolerationrestriction,
    resourcequota,
    runtimeclass,
    serviceaccount,
    storage,
)
from kschedd.store.admission_plugins.attributes import Admit, Attributes, Authorize, Classes, Raw, Scope, Validate
from kschedd.store.admission_plugins.resourcequota import Charge
from kschedd.store.errors import Forbidden, Unadmitted

_POD: Final = frozenset(("Pod",))
_CLAIM: Final = frozenset(("PersistentVolumeClaim",))


@attrs.frozen
class AdmissionPlugin:
    """The functions of a plugin, and the kinds of objects for which they are called."""

    on: bool  # enabled by default
    kinds: Collection[str] = ()
    admit: Admit | None = None
    validate: Validate | None = None
    scope: Scope | None = None
    validated_kinds: Collection[str] = ()  # kinds of objects to validate, if different from `kinds`
    authorize: Authorize | None = None


@attrs.frozen
class ValidatingPlugin:
    """A plugin from a plugin file; it replaces kube-apiserver's ValidatingAdmissionPolicy and webhooks.

    The plugin receives the whole object, including its name. Its result for a pod is therefore not cached for other
    pods with an equal spec.
    """

    # called with the new and old object; may raise ApiError
    validate: Callable[[Attributes, Raw | None, Raw | None], None]
    kinds: Collection[str] = ()  # empty: all kinds
    on: bool = True  # enabled by default


NAMESPACE_LIFECYCLE: Final = "NamespaceLifecycle"
SERVICE_ACCOUNT: Final = "ServiceAccount"
_WITH_ACCOUNTS: Final = AdmissionPlugin(
    True, _POD, serviceaccount.admit_with_account, scope=serviceaccount.scope_of_accounts
)

# In order of execution.
_CHAIN: Final[Mapping[str, AdmissionPlugin]] = {
    NAMESPACE_LIFECYCLE: AdmissionPlugin(True),
    "LimitPodHardAntiAffinityTopology": AdmissionPlugin(False, _POD, validate=antiaffinity.validate),
    "LimitRanger": AdmissionPlugin(
        True,
        _POD,
        limitranger.admit,
        limitranger.validate,
        limitranger.scope,
        validated_kinds=frozenset(("Pod", "PersistentVolumeClaim")),
    ),
    SERVICE_ACCOUNT: AdmissionPlugin(True, _POD, serviceaccount.admit, scope=serviceaccount.scope),
    "NodeRestriction": AdmissionPlugin(False, noderestriction.KINDS, authorize=noderestriction.authorize),
    # Off by default, unlike in kube-apiserver, because kschedd's nodes are ready as soon as they are created.
    "TaintNodesByCondition": AdmissionPlugin(False, frozenset(("Node",)), nodetaint.admit),
    "PodSecurity": AdmissionPlugin(
        True,
        _POD,
        validate=podsecurity.validate,
        scope=podsecurity.scope,
        validated_kinds=frozenset(("Pod", "Namespace", *POD_TEMPLATES)),
    ),
    "PodNodeSelector": AdmissionPlugin(False, _POD, podnodeselector.admit, scope=podnodeselector.scope),
    "Priority": AdmissionPlugin(
        True,
        frozenset(("Pod", podpriority.POD_GROUP)),
        podpriority.admit,
        podpriority.validate,
        validated_kinds=frozenset(("PriorityClass",)),
    ),
    "DefaultTolerationSeconds": AdmissionPlugin(True, _POD, defaulttolerationseconds.admit),
    "PodTolerationRestriction": AdmissionPlugin(
        False,
        _POD,
        podtolerationrestriction.admit,
        podtolerationrestriction.validate,
        podtolerationrestriction.scope,
    ),
    "ExtendedResourceToleration": AdmissionPlugin(False, _POD, extendedresourcetoleration.admit),
    "DefaultStorageClass": AdmissionPlugin(True, _CLAIM, storage.set_default),
    "StorageObjectInUseProtection": AdmissionPlugin(True, storage.PROTECTED, storage.protect),
    "PersistentVolumeClaimResize": AdmissionPlugin(True, _CLAIM, validate=storage.validate_resize),
    "RuntimeClass": AdmissionPlugin(True, _POD, runtimeclass.admit, runtimeclass.validate),
    "MutatingAdmissionPolicy": AdmissionPlugin(True),
    "MutatingAdmissionWebhook": AdmissionPlugin(True),
    "ValidatingAdmissionPolicy": AdmissionPlugin(True),
    "ValidatingAdmissionWebhook": AdmissionPlugin(True),
    resourcequota.QUOTA: AdmissionPlugin(True),
}
PLUGINS: Final[Mapping[str, bool]] = {name: plugin.on for name, plugin in _CHAIN.items()}
"""All plugins by name; the value is True if the plugin is enabled by default."""

NOT_DONE: Final = frozenset(
    (
        "AlwaysAdmit AlwaysDeny AlwaysPullImages CertificateApproval CertificateSigning CertificateSubjectRestriction "
        "ClusterTrustBundleAttest DefaultIngressClass DenyServiceExternalIPs EventRateLimit ImagePolicyWebhook "
        "NamespaceAutoProvision NamespaceExists"
        " OwnerReferencesPermissionEnforcement PodTopologyLabels"
    ).split()
)
"""kube-apiserver's other plugins. Disabling them is accepted and has no effect."""


@attrs.define(eq=False)
class UnknownAdmissionPlugin(KscheddError):
    name: str
    others: Collection[str] = ()  # from plugin files

    def __str__(self) -> str:
        there = f"there are: {', '.join((*PLUGINS, *self.others))}"
        if self.name in NOT_DONE:
            return f'admission plugin "{self.name}" is not available here; {there}'
        return f'admission plugin "{self.name[:100]}" does not exist; {there}'


def configured_plugins(
    enable: Collection[str], disable: Collection[str], others: Collection[str] = ()
) -> dict[str, bool]:
    """Return the plugins that the flags `--enable-admission-plugins` and `--disable-admission-plugins` leave enabled.

    `others` are the names of plugins from plugin files. Raises UnknownAdmissionPlugin.
    """
    there = (*PLUGINS, *others)
    for name in (*enable, *disable):
        if name not in there and not (name in NOT_DONE and name in disable and name not in enable):
            raise UnknownAdmissionPlugin(name, others)
    off = {name: False for name in disable if name in there}
    return {**off, **dict.fromkeys(enable, True)}


class Admission:
    """The configured plugin chain, e.g. `{"RuntimeClass": False, "ExtendedResourceToleration": True}`.

    `others` are plugins from plugin files, by name, in the order in which they are called. With `accounts`, each
    namespace has the ServiceAccount `default`, and the plugin ServiceAccount mounts tokens into pods.
    """

    def __init__(
        self,
        configured: Mapping[str, bool] | None = None,
        others: Mapping[str, ValidatingPlugin] | None = None,
        *,
        accounts: bool = False,
    ) -> None:
        others = others or {}
        for name in configured or ():
            if name not in PLUGINS and name not in others:
                raise UnknownAdmissionPlugin(name, others)
        by_default = {**PLUGINS, **{name: plugin.on for name, plugin in others.items()}}
        self.enabled: Mapping[str, bool] = {**by_default, **(configured or {})}
        self.others = [plugin for name, plugin in others.items() if self.enabled[name]]
        plugins = {**_CHAIN, SERVICE_ACCOUNT: _WITH_ACCOUNTS} if accounts else _CHAIN
        chain = [plugin for name, plugin in plugins.items() if self.enabled[name]]
        self._admit: dict[str, list[Admit]] = {}
        self._validate: dict[str, list[Validate]] = {}
        self._authorize: dict[str, list[Authorize]] = {}
        self._scopes = [plugin.scope for plugin in chain if plugin.scope is not None]
        for plugin in chain:
            for kind in plugin.kinds if plugin.admit is not None else ():
                assert plugin.admit is not None
                self._admit.setdefault(kind, []).append(plugin.admit)
            for kind in (plugin.validated_kinds or plugin.kinds) if plugin.validate is not None else ():
                assert plugin.validate is not None
                self._validate.setdefault(kind, []).append(plugin.validate)
            for kind in plugin.kinds if plugin.authorize is not None else ():
                assert plugin.authorize is not None
                self._authorize.setdefault(kind, []).append(plugin.authorize)

    def admit(self, attributes: Attributes, raw: Raw, classes: Classes) -> dict[str, Any]:
        """Return the object after all mutating plugins, before it is validated."""
        try:
            for plugin in self._admit.get(attributes.kind, ()):
                raw = plugin(attributes, raw, classes)
        except Forbidden as refused:
            raise Unadmitted(refused.kind, refused.name, refused.why) from None
        return raw if isinstance(raw, dict) else dict(raw)

    def depends_on_user(self, kind: str) -> bool:
        """Return whether a plugin's decision about objects of this kind depends on the user."""
        return kind in self._authorize

    def authorize(self, attributes: Attributes, raw: Raw | None, old: Raw | None, classes: Classes) -> None:
        """Raise an error if the user may not make this request."""
        for plugin in self._authorize.get(attributes.kind, ()):
            plugin(attributes, raw, old, classes)

    def validate(self, attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> Sequence[str]:
        """Raise an error if a plugin rejects the object, which is valid; otherwise return the warnings."""
        plugins = self._validate.get(attributes.kind, ())
        return [warning for plugin in plugins for warning in plugin(attributes, raw, old, classes) or ()]

    def validate_whole(self, attributes: Attributes, new: Raw | None, old: Raw | None) -> None:
        """Raise ApiError if a plugin from a plugin file rejects the write."""
        for plugin in self.others:
            if not plugin.kinds or attributes.kind in plugin.kinds:
                plugin.validate(attributes, new, old)

    def scope(self, namespace: str, classes: Classes) -> Sequence[Any] | None:
        """Return the parts of a namespace that the plugins read; None if there are none."""
        found = None
        for place, scope in enumerate(self._scopes):
            if seen := scope(namespace, classes):
                found = [*(found or ()), place, seen]
        return found

    def charges(self, attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> Sequence[Charge]:
        """Return the quotas that count the object, each with its usage including this request."""
        return resourcequota.charges(attributes, raw, old, classes) if self.enabled[resourcequota.QUOTA] else ()
