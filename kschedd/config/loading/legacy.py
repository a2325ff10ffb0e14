"""Features that only the formats v1alpha1 and v1alpha2 have: algorithmSource, and fields that are now plugin arguments.

Source: Kubernetes v1.18, kube-scheduler/config/v1alpha1 and v1alpha2/types.go, scheduler/scheduler.go (New),
scheduler/factory.go (createFromProvider, createFromConfig).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from kschedd.config.loading.context import Loading
from kschedd.config.loading.policy import POLICY_RELEASE, read_policy
from kschedd.config.loading.profiles import made_profile, read_plugin_config, read_plugins
from kschedd.config.model import DEFAULT_SCHEDULER_NAME, Extender, PluginRef, Profile
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.parsing.reading import INT64, ConfigFields, ConfigReader, ConfigValue
from kschedd.config.parsing.source import read_document

DEFAULT_PROVIDER: Final = "DefaultProvider"
AUTOSCALER_PROVIDER: Final = "ClusterAutoscalerProvider"
_LEAST, _MOST = "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated"


def read_algorithm_source(fields: ConfigFields, loading: Loading) -> tuple[list[Profile], tuple[Extender, ...]]:
    """Return the profile of a v1alpha1 file, with the extenders of the Policy that the file names, if any."""
    name = fields.text("schedulerName") or DEFAULT_SCHEDULER_NAME
    source = fields.mapping("algorithmSource")
    inner = source.fields("policy", "provider") if source else None
    policy = inner.mapping("policy") if inner else None
    if inner is not None and policy is not None:
        if inner.get("provider") is not None:
            policy.wrong("a policy and a provider exclude each other")
        found = _policy_of(policy, loading, name)
        if found is None:
            return [], ()
        profile, extenders = found
        for ignored in ("plugins", "pluginConfig"):
            if (given := fields.get(ignored)) is not None:
                given.reading.warn(given.path, None, "is not used, because a Policy lists the plugins")
        return [_with_switches(profile, fields, loading)], extenders
    provider = inner.choice("provider", DEFAULT_PROVIDER, (DEFAULT_PROVIDER, AUTOSCALER_PROVIDER)) if inner else ""
    plugins = read_plugins(fields.place, fields.mapping("plugins"), name, loading)
    if provider == AUTOSCALER_PROVIDER:
        plugins["score"] = tuple(
            PluginRef(_MOST, ref.weight) if ref.name == _LEAST else ref for ref in plugins["score"]
        )
    args = read_plugin_config(fields, name, loading)
    return [_with_switches(made_profile(name, plugins, args, loading), fields, loading)], ()


def with_switches(profiles: list[Profile], fields: ConfigFields, loading: Loading) -> list[Profile]:
    return [_with_switches(profile, fields, loading) for profile in profiles]


def _with_switches(profile: Profile, fields: ConfigFields, loading: Loading) -> Profile:
    """Copy disablePreemption, bindTimeoutSeconds and hardPodAffinitySymmetricWeight to the corresponding plugins."""
    args, plugins = dict(profile.plugin_args), dict(profile.plugins)
    for field, plugin, attribute, bounds in (
        ("bindTimeoutSeconds", "VolumeBinding", "bind_timeout_s", (0, INT64[1])),
        ("hardPodAffinitySymmetricWeight", "InterPodAffinity", "hard_pod_affinity_weight", (0, 100)),
    ):
        value = fields.maybe_integer(field, bounds)
        if value is not None and plugin in args:
            args[plugin] = attrs.evolve(args[plugin], **{attribute: value})
            loading.note(f"profiles[{profile.scheduler_name}].pluginConfig[{plugin}]", fields.get(field))
    if fields.boolean("disablePreemption", False):
        plugins["post_filter"] = tuple(ref for ref in plugins["post_filter"] if ref.name != "DefaultPreemption")
        args.pop("DefaultPreemption", None)
        plugins["pre_enqueue"] = tuple(ref for ref in plugins["pre_enqueue"] if ref.name != "DefaultPreemption")
    return attrs.evolve(profile, plugins=plugins, plugin_args=args)


def _policy_of(place: ConfigValue, loading: Loading, name: str) -> tuple[Profile, tuple[Extender, ...]] | None:
    fields = place.fields("file", "configMap")
    if fields is None:
        return None
    config_map = fields.get("configMap")
    if config_map is not None:
        why = "a ConfigMap cannot be read here, where no cluster is there yet"
        way = "policy: {file: {path: policy.cfg}}, with what `kubectl get configmap NAME -n NAMESPACE -o "
        config_map.wrong(why, way + "jsonpath='{.data.policy\\.cfg}'` prints in that file")
        return None
    file = fields.mapping("file")
    inner = file.fields("path") if file else None
    path = inner.needed_text("path") if inner else None
    if inner is None or path is None:
        if file is None:
            place.wrong("needs a file", "file: {path: policy.yaml}")
        return None
    try:
        text = loading.read_file(path)
    except (OSError, UnicodeDecodeError) as wrong:
        inner.place.at("path", path).wrong(f"cannot be read: {getattr(wrong, 'strerror', None) or wrong}")
        return None
    try:
        document = read_document(text, path)
    except ConfigErrors as faults:
        loading.reading.faults.extend(faults.errors)
        return None
    reading = ConfigReader(path, document, loading.reading.faults, loading.reading.warnings)
    within = attrs.evolve(loading, reading=reading, release=POLICY_RELEASE)
    root = ConfigValue(document.value, "$", reading)
    if not isinstance(root.value, Mapping) or root.value.get("kind") != "Policy":
        root.wrong("is no Policy", "apiVersion: v1, kind: Policy, ...")
        return None
    return read_policy(root, within, name)
