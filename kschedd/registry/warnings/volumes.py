"""Warnings about overlapping file paths in a volume.

Source: Kubernetes v1.34, pkg/api/pod/warnings.go (warningsForOverlappingVirtualPaths).
The functions require the volumes of a valid pod. Raises nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

Raw = Mapping[str, Any]


@attrs.frozen
class _Path:
    """A path in a volume, with the source of its file; "" if the source is obvious."""

    path: str
    source: str = ""

    def __str__(self) -> str:
        return _quoted(self.path) + (f" ({self.source})" if self.source else "")

    def overlaps(self, other: "_Path") -> bool:
        one, two = f"{self.path}/", f"{other.path}/"
        return bool(self.path and other.path) and (one.startswith(two) or two.startswith(one))


def overlapping_paths(volume: Raw) -> Iterator[str]:
    """Yield the warnings about overlapping files of one volume."""
    name = _quoted(str(volume.get("name") or ""))
    config, secret, downward = (volume.get(field) or {} for field in ("configMap", "secret", "downwardAPI"))
    for described, items in (
        (f"ConfigMap {_quoted(config.get('name') or '')}", config.get("items")),
        (f"Secret {_quoted(secret.get('secretName') or '')}", secret.get("items")),
        ("DownwardAPI", downward.get("items")),
    ):
        yield from _overlaps(name, described, (_Path(_trimmed(item)) for item in items or ()), [])
    before: list[_Path] = []
    for source in (volume.get("projected") or {}).get("sources") or ():
        if not source:
            yield f"volume {name} (Projected) has no sources provided"
        yield from _overlaps(name, "Projected", _projected(source), before)


def _overlaps(name: str, described: str, paths: Iterable[_Path], before: list[_Path]) -> Iterator[str]:
    """Yield the warnings about paths that overlap with paths in `before`, and append them to `before`."""
    for path in paths:
        for other in before:
            if path.overlaps(other):
                yield f"volume {name} ({described}): overlapping paths: {path} with {other}"
        before.append(path)


def _projected(source: Raw) -> Iterator[_Path]:
    """Yield the paths of one source of a projected volume."""
    if (config := source.get("configMap")) is not None and config.get("items"):
        yield from (_Path(_trimmed(item), f"ConfigMap {_quoted(config.get('name') or '')}") for item in config["items"])
    elif (secret := source.get("secret")) is not None and secret.get("items"):
        yield from (_Path(_trimmed(item), f"Secret {_quoted(secret.get('name') or '')}") for item in secret["items"])
    elif (downward := source.get("downwardAPI")) is not None and downward.get("items"):
        yield from (_Path(_trimmed(item), "DownwardAPI") for item in downward["items"])
    elif (token := source.get("serviceAccountToken")) is not None:
        yield _Path(_trimmed(token), "ServiceAccountToken")
    elif (bundle := source.get("clusterTrustBundle")) is not None:
        called = bundle["name"] if bundle.get("name") is not None else bundle.get("signerName") or ""
        yield _Path(_trimmed(bundle), f"ClusterTrustBundle {_quoted(called)}")
    elif (certificate := source.get("podCertificate")) is not None:
        for field, called in (
            ("certificateChainPath", "chain"),
            ("keyPath", "key"),
            ("credentialBundlePath", "credential bundle"),
        ):
            if path := certificate.get(field):
                yield _Path(path.rstrip("/"), f"PodCertificate {called}")


def _trimmed(item: Raw) -> str:
    return str(item.get("path") or "").rstrip("/")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
