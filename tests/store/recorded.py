"""What a recorded kube-apiserver answered, put to the embedded store: one create, update or patch a record.

`answer` asks the store; `agreement` says in which of these parts it answered alike: `accepted` (whether), `object`
(field by field, without what differs from run to run) and `causes` (the set of fields a refusal names).
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedd.api.kinds import BY_NAME
from kschedd.bench.shared import shared_folder
from kschedd.store.admission import Admission
from kschedd.store.errors import ApiError, BadPatch, Invalid
from kschedd.store.field_validation import known_fields
from kschedd.store.store import Store

NOW_S = 1_750_000_000.0
CONTENT_TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
_PLACEHOLDERS = {
    "<uid>": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "<time>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)",
    "<resourceVersion>": r"\d+",
    "*****": r"[a-z0-9]{5}",
}
_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


@attrs.frozen
class Answer:
    accepted: bool
    object: Mapping[str, Any] | None = None
    causes: frozenset[str] = frozenset()
    message: str = ""
    warnings: tuple[str, ...] = ()


def records(name: str) -> list[dict[str, Any]]:
    """The records of a file; skips the test where there is none."""
    shared = shared_folder()
    file = None if shared is None else shared / "apiserver" / f"{name}.jsonl.gz"
    if file is None or not file.is_file():
        pytest.skip("no recorded API server: set KSCHEDD_SHARED or put the shared folder beside the checkout")
    return list(_read(file))


def _read(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def answer(record: Mapping[str, Any]) -> Answer | None:
    """What the store says to a record; None where it cannot be asked, as its setup was refused."""
    store = Store(now=lambda: NOW_S, admission=Admission({"MemoryPressureToleration": False}))
    names: dict[str, Any] = {}
    try:
        for manifest in record.get("setup", ()):
            _make(store, manifest, names)
        before = record.get("old") or record.get("object")
        target = _make(store, before, names) if before else None
    except ApiError:
        return None
    if target is not None:
        meta = target.raw["metadata"]
        names |= {"<uid>": meta["uid"], "<resourceVersion>": meta["resourceVersion"]}
        names |= {"<time>": meta["creationTimestamp"]}
    warnings: list[str] = []
    try:
        made = _ask(store, record, target, names, warnings)
    except Invalid as refusal:
        causes = frozenset(fault.path for fault in refusal.faults)
        return Answer(False, None, causes, str(refusal), tuple(warnings))
    except ApiError as refusal:
        return Answer(False, None, frozenset(), str(refusal), tuple(warnings))
    return Answer(True, made.raw, warnings=tuple(warnings))


def _make(store: Store, manifest: Mapping[str, Any], names: dict[str, Any]) -> Any:
    manifest = _filled(manifest, names)
    status = manifest.pop("status", None)
    made = store.create(manifest)
    if status is not None:
        whole = {**made.raw, "status": {**(made.raw.get("status") or {}), **status}}
        made = store.update(whole, subresource="status")
    names[f"<uid:{made.name}>"] = made.uid
    names[f"<resourceVersion:{made.name}>"] = str(made.resource_version)
    return made


def _filled(value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(item, names) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, names) for item in value]
    if isinstance(value, str) and "<" in value:
        return names.get(value, value)
    return value


def agreement(record: Mapping[str, Any], got: Answer) -> dict[str, bool]:
    want = record["want"]
    found = {"accepted": (want["code"] < 300) == got.accepted}
    if want["code"] < 300:
        found["object"] = got.accepted and not differences(bare(want["object"]), bare(got.object or {}))
    elif want["status"]["causes"]:
        wanted = {cause["field"] for cause in want["status"]["causes"]}
        found["causes"] = wanted == {"patch"} or wanted == set(got.causes)
    return found


def bare(raw: Mapping[str, Any]) -> dict[str, Any]:
    meta = {name: value for name, value in (raw.get("metadata") or {}).items() if name not in _OWN}
    return {**raw, "metadata": meta}


def differences(want: Any, got: Any, path: str = "") -> list[str]:
    if isinstance(want, Mapping) and isinstance(got, Mapping):
        names = [*want, *(name for name in got if name not in want)]
        return [d for n in names for d in differences(want.get(n, ...), got.get(n, ...), f"{path}.{n}")]
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        return [d for i, (a, b) in enumerate(zip(want, got, strict=True)) for d in differences(a, b, f"{path}[{i}]")]
    return [] if _alike(want, got) else [f"{path}: want {want!r}, got {got!r}"]


def _alike(want: Any, got: Any) -> bool:
    if isinstance(want, str) and isinstance(got, str):
        if want == got:
            return True
        expression = re.escape(want)
        for name, form in _PLACEHOLDERS.items():
            expression = expression.replace(re.escape(name), form)
        return re.fullmatch(expression, got) is not None
    return bool(want == got) and isinstance(want, bool) == isinstance(got, bool)


def _ask(store: Store, record: Mapping[str, Any], target: Any, names: dict[str, Any], warnings: list[str]) -> Any:
    kind = record["kind"]
    if "manifest" in record:
        raw = _filled(record["manifest"], names)
        if isinstance(raw, dict):
            raw = {"kind": kind, "apiVersion": BY_NAME[kind].api_version, **raw}
            raw, said = known_fields(raw, record["fieldValidation"])
            warnings += said
        return store.create(raw, dry_run=True)
    if "new" in record:
        raw = {"kind": kind, "apiVersion": BY_NAME[kind].api_version, **_filled(record["new"], names)}
        raw, said = known_fields(raw, record["fieldValidation"])
        warnings += said
        return store.update(raw, subresource=record["subresource"], dry_run=True, as_client=True)
    text = record.get("patch_text")
    try:
        patch = _filled(record["patch"], names) if text is None else json.loads(text)
    except ValueError as wrong:
        raise BadPatch(f"error decoding patch: {wrong}") from None
    made, said = store.patch(
        kind,
        target.namespace,
        target.name,
        patch,
        CONTENT_TYPES[record["content_type"]],
        subresource=record["subresource"],
        validation=record["fieldValidation"],
        dry_run=True,
    )
    warnings += said
    return made
