"""Parsing and validation of a configuration's extenders.

Source: Kubernetes v1.34, apis/config/validation/validation.go (validateExtenders), scheduler/extender.go. Differences
from upstream: a URL that cannot be called (no http:// or https://, no host, a wrong port), a negative timeout and
contradictory TLS settings are rejected here, whereas upstream fails at the first call.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

from kschedd.api.selecting.names import qualified_name
from kschedd.config.model import Extender, ExtenderTLS, ManagedResource
from kschedd.config.parsing.reading import INT64, ConfigFields, ConfigValue

DEFAULT_TIMEOUT_S = 5.0


def read_extenders(root: ConfigFields, *, nodes_lose_pods: bool) -> tuple[Extender, ...]:
    """Return the extenders. `nodes_lose_pods` depends on the release that defined the format."""
    extenders = []
    managed: set[str] = set()
    binders = 0
    for place in root.items("extenders"):
        extender = _extender(place, managed)
        if extender is None:
            continue
        extenders.append(attrs.evolve(extender, nodes_lose_pods=nodes_lose_pods))
        binders += bool(extender.bind_verb)
        if extender.bind_verb and binders == 2:
            place.at("bindVerb", extender.bind_verb).wrong("only one extender can bind, and one before it does")
    return tuple(extenders)


def _can_be_called(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:  # the URL contains an invalid IPv6 address or port
        return False


def _extender(place: ConfigValue, managed: set[str]) -> Extender | None:
    fields = place.fields(
        "urlPrefix",
        "filterVerb",
        "preemptVerb",
        "prioritizeVerb",
        "weight",
        "bindVerb",
        "enableHTTPS",
        "tlsConfig",
        "httpTimeout",
        "nodeCacheCapable",
        "managedResources",
        "ignorable",
    )
    if fields is None:
        return None
    url = fields.needed_text("urlPrefix")
    if url is not None and not _can_be_called(url):
        place.at("urlPrefix", url).wrong("not an address that can be called", "http://HOST... or https://HOST:PORT...")
    weight = fields.integer("weight", 0, INT64)
    prioritize = fields.text("prioritizeVerb")
    if prioritize and weight <= 0:
        why = "an extender with a prioritizeVerb needs a weight"
        place.reading.report(fields.path("weight"), weight, why, "1 or more")
    timeout = fields.duration_s("httpTimeout", 0.0)
    if timeout < 0:
        place.reading.report(fields.path("httpTimeout"), f"{timeout:g}s", "out of range", "0s or more (0s: 5s)")
    tls = fields.mapping("tlsConfig")
    return Extender(
        url_prefix=url or "",
        filter_verb=fields.text("filterVerb"),
        preempt_verb=fields.text("preemptVerb"),
        prioritize_verb=prioritize,
        bind_verb=fields.text("bindVerb"),
        weight=weight,
        enable_https=fields.boolean("enableHTTPS", False),
        tls=_tls(tls) if tls else None,
        http_timeout_s=timeout or DEFAULT_TIMEOUT_S,
        node_cache_capable=fields.boolean("nodeCacheCapable", False),
        managed_resources=_managed(fields, managed),
        ignorable=fields.boolean("ignorable", False),
    )


def _managed(fields: ConfigFields, seen: set[str]) -> tuple[ManagedResource, ...]:
    resources = []
    for item in fields.items("managedResources"):
        inner = item.fields("name", "ignoredByScheduler")
        name = inner.needed_text("name") if inner else None
        if inner is None or name is None:
            continue
        place = item.at("name", name)
        wrong = qualified_name(name)
        for why in wrong:
            place.wrong(why)
        if not wrong and not _is_extended(name):
            place.wrong("not the name of an extended resource", "a name with a domain, as example.com/gpu")
        if name in seen:
            place.wrong("another extender, or this one, manages it already")
        seen.add(name)
        resources.append(ManagedResource(name, inner.boolean("ignoredByScheduler", False)))
    return tuple(resources)


def _is_extended(name: str) -> bool:
    """Return whether the name is an extended resource, not a native one or a quota (IsExtendedResourceName)."""
    own = "/" not in name or "kubernetes.io/" in name
    return not own and not name.startswith("requests.") and not qualified_name(f"requests.{name}")


def _tls(place: ConfigValue) -> ExtenderTLS | None:
    fields = place.fields("insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData")
    if fields is None:
        return None
    tls = ExtenderTLS(
        insecure=fields.boolean("insecure", False),
        server_name=fields.text("serverName"),
        cert_file=fields.text("certFile"),
        key_file=fields.text("keyFile"),
        ca_file=fields.text("caFile"),
        cert_data=_pem(fields, "certData"),
        key_data=_pem(fields, "keyData"),
        ca_data=_pem(fields, "caData"),
    )
    if tls.insecure and (tls.ca_file or tls.ca_data):
        place.reading.report(fields.path("insecure"), True, "contradicts a caFile or caData")
    if bool(tls.cert_file or tls.cert_data) != bool(tls.key_file or tls.key_data):
        place.reading.report(place.path, None, "a certificate and its key are needed together")
    return tls


def _pem(fields: ConfigFields, name: str) -> bytes:
    text = fields.text(name)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # The message omits the value, because it may be a private key.
        fields.place.reading.report(fields.path(name), None, "not base64")
        return b""


def legacy_extenders(fields: ConfigFields) -> ConfigFields:
    """Return the fields of a Policy or of v1alpha2 with their extenders in v1's spelling.

    The old formats have `enableHttps`, and `httpTimeout` is in nanoseconds.

    Source: Kubernetes v1.22, kube-scheduler/config/v1/types.go (LegacyExtender).
    """
    given = fields.place.value.get("extenders")
    if not isinstance(given, list | tuple):
        return fields
    extenders = [_respelled(one) if isinstance(one, Mapping) else one for one in given]
    return ConfigFields(attrs.evolve(fields.place, value={**fields.place.value, "extenders": extenders}))


def _respelled(extender: Mapping[str, Any]) -> dict[str, Any]:
    new = {("enableHTTPS" if key == "enableHttps" else key): value for key, value in extender.items()}
    timeout = new.get("httpTimeout")
    if isinstance(timeout, int) and not isinstance(timeout, bool):
        new["httpTimeout"] = f"{timeout}ns"
    return new
