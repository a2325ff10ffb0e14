"""The embedded store's answers to creates, updates and patches, compared with those of a recorded kube-apiserver.

`answer` makes the request; `agreement` returns which of these parts are equal: `accepted`, `object` (without fields
that differ between runs) and `causes` (the set of fields in a rejection).
"""

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedd.api.schemas.kinds import BY_NAME
from kschedd.bench.shared import shared_folder
from kschedd.store.admission.chain import Admission
from kschedd.store.errors import ApiError, ApplyConflict, BadPatch, Invalid
from kschedd.store.field_validation import known_fields
from kschedd.store.managing import with_resolved_entries
from kschedd.store.patches.patching import check_patch_options, read_configuration
from kschedd.store.store import Store

NOW_S = 1_750_000_000.0
APPLY = "application/apply-patch+yaml"
GOLDEN = "golden"  # manager of the objects that existed before
CONTENT_TYPES = {
    APPLY: "apply",
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
_PLACEHOLDERS = {
    "<uid>": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "<time>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)",
    "<resourceVersion>": r"\d+",
    "<ip>": r"[0-9a-f]*[.:][0-9a-f.:]+",
    "<scheme>": r'[^"]*',
    "<address>": r"0x[0-9a-f]+",
    "*****": r"[a-z0-9]{5}",
}
_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


@attrs.frozen
class Answer:
    code: int
    object: Mapping[str, Any] | None = None
    causes: tuple[tuple[str, str], ...] = ()  # field, message
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        return self.code < 300

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(field for field, _ in self.causes)


def records(name: str) -> list[dict[str, Any]]:
    """Return the records of a file; skip the test if the file does not exist."""
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
    """Return the store's answer to a record, or None if the store rejected the setup."""
    admission = Admission({"TaintNodesByCondition": True})
    store = Store(now=lambda: NOW_S, admission=admission, service_range="10.0.0.0/24")
    names: dict[str, Any] = {}
    try:
        for manifest in record.get("setup", ()):
            _make(store, manifest, names)
        before = record.get("old") or record.get("object")
        target = _make(store, before, names) if before else None
        for each in record.get("applied", ()):
            target = _apply(store, record["kind"], target, each["manifest"], each["fieldManager"])
    except ApiError:
        return None
    if target is not None:
        names |= _given(target.raw)
    warnings: list[str] = []
    try:
        made = _ask(store, record, target, names, warnings)
    except ApiError as refusal:
        faults = refusal.faults if isinstance(refusal, Invalid) and refusal.code == 422 else ()
        causes = tuple(dict.fromkeys((fault.path, fault.why) for fault in faults))
        if isinstance(refusal, ApplyConflict):
            causes = refusal.causes
        return Answer(refusal.code, None, causes, refusal.reason, str(refusal), tuple(warnings))
    code = 201 if "manifest" in record or ("patch" in record and target is None) else 200
    return Answer(code, made.raw, warnings=tuple(warnings))


def _given(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a request's placeholders, which are those that the server assigned to the object."""
    meta, spec = raw["metadata"], raw.get("spec") or {}
    names = {"<uid>": meta["uid"], "<resourceVersion>": meta["resourceVersion"], "<time>": meta["creationTimestamp"]}
    if "clusterIP" in spec:
        names["<ip>"] = spec["clusterIP"]
    for port in spec.get("ports") or ():
        if "nodePort" in port:
            names["<nodePort>"] = port["nodePort"]
    return names


def _make(store: Store, manifest: Mapping[str, Any], names: dict[str, Any]) -> Any:
    manifest = _filled(manifest, names)
    status = manifest.pop("status", None)
    made = store.create(manifest, manager=GOLDEN)
    if status is not None:
        whole = {**made.raw, "status": {**(made.raw.get("status") or {}), **status}}
        made = store.update(whole, subresource="status", manager=GOLDEN)
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
    """Return for each compared part whether it is equal."""
    want = record["want"]
    found = {"accepted": (want["code"] < 300) == got.accepted, "code": want["code"] == got.code}
    refusal = want.get("status") or {}
    if not refusal:
        found["object"] = got.accepted and not differences(bare(want["object"]), bare(got.object or {}))
    if "managedFields" in want:
        found["managedFields"] = got.accepted and want["managedFields"] == managed_fields(got.object or {})
    causes = refusal.get("causes") or []
    if causes or got.causes:
        found["causes"] = {cause["field"] for cause in causes} == got.fields
    if refusal or not got.accepted:
        found["message"] = refusal.get("reason") == got.reason and _same_message(refusal["message"], got.message)
    if want.get("warnings") or got.warnings:
        found["warnings"] = _alike_all(want.get("warnings", []), got.warnings)
    return found


def _same_message(want: str, got: str) -> bool:
    """Return whether two messages are equal, except for the order of the items in brackets."""
    got = got.split("\n@@ ")[0]
    (head, _, rest), (other, _, others) = want.partition("["), got.partition("[")
    parts = rest.rstrip("]").split(", "), others.rstrip("]").split(", ")
    return _alike(want, got) or (_alike(head, other) and _alike_all(sorted(parts[0]), sorted(parts[1])))


def _alike_all(want: Sequence[str], got: Sequence[str]) -> bool:
    return len(want) == len(got) and all(map(_alike, want, got))


def bare(raw: Mapping[str, Any]) -> dict[str, Any]:
    meta = {name: value for name, value in (raw.get("metadata") or {}).items() if name not in _OWN}
    return {**raw, "metadata": meta}


def differences(want: Any, got: Any, path: str = "") -> list[str]:
    if isinstance(want, Mapping) and isinstance(got, Mapping):
        rest, found = dict(got), []
        for name, inner in want.items():
            match = name if name in rest else next((n for n in rest if n not in want and _alike(name, n)), name)
            found += differences(inner, rest.pop(match, ...), f"{path}.{name}")
        return found + [f"{path}.{name}: want nothing, got {inner!r}" for name, inner in rest.items()]
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
    if want == "<nodePort>":
        return isinstance(got, int)
    return bool(want == got) and isinstance(want, bool) == isinstance(got, bool)


def _ask(store: Store, record: Mapping[str, Any], target: Any, names: dict[str, Any], warnings: list[str]) -> Any:
    kind = record["kind"]
    if "manifest" in record:
        raw = _filled(record["manifest"], names)
        if isinstance(raw, dict):
            raw = {"kind": kind, "apiVersion": BY_NAME[kind].api_version, **raw}
            raw, answer = known_fields(raw, record["fieldValidation"], store)
            warnings += answer
        return store.create(raw, dry_run=True)
    if "new" in record:
        raw = {"kind": kind, "apiVersion": BY_NAME[kind].api_version, **_filled(record["new"], names)}
        raw, answer = known_fields(raw, record["fieldValidation"], store)
        warnings += answer
        return store.update(raw, subresource=record["subresource"], dry_run=True, as_client=True)
    text = record.get("patch_text")
    if record["content_type"] == APPLY:
        return _ask_apply(store, record, target, names, warnings)
    try:
        patch = _filled(record["patch"], names) if text is None else json.loads(text)
    except ValueError as wrong:
        raise BadPatch(f"error decoding patch: {wrong}") from None
    made, answer = store.patch(
        kind,
        target.namespace,
        target.name,
        patch,
        CONTENT_TYPES[record["content_type"]],
        subresource=record["subresource"],
        validation=record["fieldValidation"],
        dry_run=True,
    )
    warnings += answer
    return made


def _ask_apply(store: Store, record: Mapping[str, Any], target: Any, names: dict[str, Any], warnings: list[str]) -> Any:
    check_patch_options(record["fieldManager"], record["force"], applied=True)
    text = record.get("patch_text")
    config, answer = read_configuration(
        json.dumps(_filled(record["patch"], names)) if text is None else text, record["fieldValidation"]
    )
    warnings += answer
    return _apply(
        store,
        record["kind"],
        target,
        config,
        record["fieldManager"],
        force=record["force"],
        subresource=record["subresource"],
        dry_run=True,
    )


def _apply(store: Store, kind: str, target: Any, config: Any, manager: str, **how: Any) -> Any:
    """Apply (server-side) to the path of `target`, or else to the path that the configuration names."""
    known = BY_NAME[kind]
    namespace, name = "default" if known.namespaced else "", ""
    if target is not None:
        namespace, name = target.namespace, target.name
    elif isinstance(config, dict):
        name = str((config.get("metadata") or {}).get("name") or "x")
    made, _ = store.server_side_apply(kind, namespace, name, config, manager, api_version=known.api_version, **how)
    return made


def managed_fields(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the managedFields of an object in the form of the records."""
    entries = with_resolved_entries(raw)["metadata"].get("managedFields") or ()
    bare_of_times = [{name: value for name, value in entry.items() if name != "time"} for entry in entries]
    return sorted(bare_of_times, key=lambda each: (each["manager"], each["operation"], each.get("subresource", "")))


def disagreements(record: Mapping[str, Any], got: Answer) -> list[str]:
    """Return the differences between the record and the store's answer, one line each."""
    want = record["want"]
    if (want["code"] < 300) != got.accepted or want["code"] != got.code:
        why = got.message or (want.get("status") or {}).get("message")
        return [f"code: want {want['code']}, got {got.code}: {why}"]
    if got.accepted:
        found = differences(bare(want["object"]), bare(got.object or {}), "object")
        if "managedFields" in want:
            found += differences(want["managedFields"], managed_fields(got.object or {}), "managedFields")
        return found
    wanted = {(cause["field"], cause["message"]) for cause in want["status"]["causes"]}
    found = [f"missing {field}: {why}" for field, why in sorted(wanted - {*got.causes})]
    return found + [f"extra {field}: {why}" for field, why in sorted({*got.causes} - wanted)]


def main() -> None:
    """Print the parts in which each family agrees, and each difference of the selected records."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("families", nargs="*", default=["create", "update", "patch"], metavar="FAMILY")
    parser.add_argument("--only", default="", metavar="PREFIX", help="print only the differences of these records")
    options = parser.parse_args()
    for family in options.families:
        counts: Counter[tuple[str, bool]] = Counter()
        for record in records(family):
            if record.get("content_type", "application/json-patch+json") not in CONTENT_TYPES:
                continue
            got = answer(record)
            if got is None or not record["id"].startswith(options.only):
                continue
            counts.update(agreement(record, got).items())
            if options.only:
                print(record["id"], *disagreements(record, got), sep="\n  ")
        parts = dict.fromkeys(part for part, _ in counts)
        print(family, *(f"{part} {counts[part, True]}/{counts[part, True] + counts[part, False]}" for part in parts))


if __name__ == "__main__":
    main()
