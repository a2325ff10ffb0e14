"""Admission: the API server's chain of plugins, each enabled or disabled by configuration.

A plugin may first refuse who asks (`authorize`, each time). Then every plugin may change the object (`admit`), it is
validated, every plugin may refuse it or warn of it (`validate`), plugins from plugin files are asked, and at last it is
counted against the quotas of its namespace (`charges`). A built-in plugin is pure: its inputs are the request, the
object and what it reads of the cluster. So the result for a pod may be cached per spec, until a class changes, and per
`scope`: what the plugins look at in the pod's namespace, which is nothing in most. NamespaceLifecycle (the namespace
must exist) is enforced by the store itself.

Source: Kubernetes v1.34, pkg/kubeapiserver/options/plugins.go (order, what is on by default).
Raises: Forbidden and AdmissionError, with the upstream plugin's message.
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
    storage,
)
from kschedd.store.admission_plugins.attributes import Admit, Attributes, Authorize, Classes, Raw, Scope, Validate
from kschedd.store.admission_plugins.resourcequota import Charge
from kschedd.store.errors import Forbidden, Unadmitted

_POD: Final = frozenset(("Pod",))
_CLAIM: Final = frozenset(("PersistentVolumeClaim",))


@attrs.frozen
class AdmissionPlugin:
    """A plugin's functions, and the kinds they are called for."""

    on: bool  # by default
    kinds: Collection[str] = ()
    admit: Admit | None = None
    validate: Validate | None = None
    scope: Scope | None = None
    validated_kinds: Collection[str] = ()  # if others than `kinds`
    authorize: Authorize | None = None


@attrs.frozen
class ValidatingPlugin:
    """A plugin from a plugin file, where upstream has ValidatingAdmissionPolicy and the webhooks.

    It sees the whole object, name and all, so what it says of a pod is not kept for others like it.
    """

    validate: Callable[[Attributes, Raw | None, Raw | None], None]  # of the (new, old) object; raises ApiError
    kinds: Collection[str] = ()  # none: all
    on: bool = True  # by default


NAMESPACE_LIFECYCLE: Final = "NamespaceLifecycle"

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
    "NodeRestriction": AdmissionPlugin(False, noderestriction.KINDS, authorize=noderestriction.authorize),
    # On upstream, where a node is not ready at once.
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
    resourcequota.QUOTA: AdmissionPlugin(True),
}
PLUGINS: Final[Mapping[str, bool]] = {name: plugin.on for name, plugin in _CHAIN.items()}
"""All plugins, and whether each is enabled by default."""

NOT_DONE: Final = frozenset(
    (
        "AlwaysAdmit AlwaysDeny AlwaysPullImages CertificateApproval CertificateSigning CertificateSubjectRestriction "
        "ClusterTrustBundleAttest DefaultIngressClass DenyServiceExternalIPs EventRateLimit ImagePolicyWebhook "
        "MutatingAdmissionPolicy MutatingAdmissionWebhook NamespaceAutoProvision NamespaceExists"
        " OwnerReferencesPermissionEnforcement PodTopologyLabels ServiceAccount ValidatingAdmissionPolicy "
        "ValidatingAdmissionWebhook"
    ).split()
)
"""kube-apiserver's other plugins: they may be named where plugins are disabled, which changes nothing."""


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
    """`--enable-admission-plugins` and `--disable-admission-plugins`. Raises UnknownAdmissionPlugin.

    `others` are the names of plugins from plugin files.
    """
    there = (*PLUGINS, *others)
    for name in (*enable, *disable):
        if name not in there and not (name in NOT_DONE and name in disable and name not in enable):
            raise UnknownAdmissionPlugin(name, others)
    off = {name: False for name in disable if name in there}
    return {**off, **dict.fromkeys(enable, True)}


class Admission:
    """The configured plugin chain, e.g. `{"RuntimeClass": False, "ExtendedResourceToleration": True}`.

    `others` are plugins from plugin files, by name, in the order in which they are asked.
    """

    def __init__(
        self, configured: Mapping[str, bool] | None = None, others: Mapping[str, ValidatingPlugin] | None = None
    ) -> None:
        others = others or {}
        for name in configured or ():
            if name not in PLUGINS and name not in others:
                raise UnknownAdmissionPlugin(name, others)
        by_default = {**PLUGINS, **{name: plugin.on for name, plugin in others.items()}}
        self.enabled: Mapping[str, bool] = {**by_default, **(configured or {})}
        self.others = [plugin for name, plugin in others.items() if self.enabled[name]]
        chain = [plugin for name, plugin in _CHAIN.items() if self.enabled[name]]
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

    def admit(self, asked: Attributes, raw: Raw, classes: Classes) -> dict[str, Any]:
        """The object as the plugins leave it, before it is validated."""
        try:
            for plugin in self._admit.get(asked.kind, ()):
                raw = plugin(asked, raw, classes)
        except Forbidden as refused:
            raise Unadmitted(refused.kind, refused.name, refused.why) from None
        return raw if isinstance(raw, dict) else dict(raw)

    def asks_who(self, kind: str) -> bool:
        """Whether it depends on the user what may be done to objects of this kind."""
        return kind in self._authorize

    def authorize(self, asked: Attributes, raw: Raw | None, old: Raw | None, classes: Classes) -> None:
        """Refuse what the user may not do."""
        for plugin in self._authorize.get(asked.kind, ()):
            plugin(asked, raw, old, classes)

    def validate(self, asked: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> Sequence[str]:
        """Refuse an object that is valid by itself; what to warn of otherwise."""
        plugins = self._validate.get(asked.kind, ())
        return [warning for plugin in plugins for warning in plugin(asked, raw, old, classes) or ()]

    def validate_whole(self, asked: Attributes, new: Raw | None, old: Raw | None) -> None:
        """Have the plugins from plugin files refuse what is about to be written. Raises ApiError."""
        for plugin in self.others:
            if not plugin.kinds or asked.kind in plugin.kinds:
                plugin.validate(asked, new, old)

    def scope(self, namespace: str, classes: Classes) -> Sequence[Any] | None:
        """What of a namespace the results for its pods depend on; None for most: nothing."""
        found = None
        for place, scope in enumerate(self._scopes):
            if seen := scope(namespace, classes):
                found = [*(found or ()), place, seen]
        return found

    def charges(self, asked: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> Sequence[Charge]:
        """The quotas that count the object, and what is used of them with it."""
        return resourcequota.charges(asked, raw, old, classes) if self.enabled[resourcequota.QUOTA] else ()
