"""Admission answers of a recorded kube-apiserver, compared with the embedded store step by step."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs

from kschedd.api.schemas.kinds import BY_NAME, Kind
from kschedd.store.admission.chain import NOT_DONE, PLUGINS, Admission
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.errors import ApiError, Invalid
from kschedd.store.store import Store
from tests.store.recorded import CONTENT_TYPES, NOW_S, Answer, _filled, _make, agreement

_PATH = re.compile(
    r"/apis?/(?:[^/]+/)?v[^/]+(?:/namespaces/(?P<ns>[^/]+)(?=/))?/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
)
_KINDS: dict[str, Kind] = {kind.plural: kind for kind in BY_NAME.values()}


@attrs.frozen
class Step:
    """One request of a record; `got` is None if the request could not be made."""

    record: str
    number: int
    want: Mapping[str, Any]
    got: Answer | None

    @property
    def agreement(self) -> Mapping[str, bool]:
        return {"accepted": False} if self.got is None else agreement({"want": self.want}, self.got)


def askable(record: Mapping[str, Any]) -> bool:
    """Return whether all admission plugins that the record enables are implemented."""
    return PLUGINS.keys() >= set(record["plugins"]["enable"])


def steps(record: Mapping[str, Any]) -> Iterator[Step]:
    plugins = record["plugins"]
    configured = {"TaintNodesByCondition": True}
    configured |= {name: False for name in plugins["disable"] if name not in NOT_DONE}
    configured |= dict.fromkeys(plugins["enable"], True)
    store = Store(now=lambda: NOW_S, admission=Admission(configured), service_range="10.0.0.0/24")
    names: dict[str, Any] = {}
    try:
        for manifest in record["setup"]:
            _make(store, manifest, names)
    except ApiError:
        store = None
    for number, step in enumerate(record["steps"]):
        yield Step(record["id"], number, step["want"], None if store is None else _answer(store, _filled(step, names)))


def _answer(store: Store, step: Mapping[str, Any]) -> Answer:
    user = step.get("as") or {"user": "admin", "groups": ["system:masters"]}
    try:
        with store.on_behalf_of(UserInfo(user["user"], tuple(user["groups"]))) as remarks:
            answer = _ask(store, step)
        return Answer(201 if step["method"] == "POST" else 200, answer, warnings=tuple(remarks.warnings))
    except ApiError as refusal:
        faults = refusal.faults if isinstance(refusal, Invalid) and refusal.code == 422 else ()
        causes = tuple(dict.fromkeys((fault.path, fault.why) for fault in faults))
        return Answer(refusal.code, None, causes, refusal.reason, str(refusal))


def _ask(store: Store, step: Mapping[str, Any]) -> Any:
    url = urlsplit(step["path"])
    match = _PATH.match(url.path)
    assert match is not None, f"{url.path} is a path of the API"
    kind, namespace, name = _KINDS[match["plural"]], match["ns"] or "", match["name"]
    subresource: Any = "status" if url.path.endswith("/status") else ""
    match step["method"]:
        case "POST":
            body = step["body"]
            meta = {**body["metadata"], "namespace": namespace} if namespace else body["metadata"]
            return store.create({**body, "metadata": meta}).raw
        case "GET":
            return store.get(kind.name, namespace, name).raw
        case "PATCH":
            patch_type: Any = CONTENT_TYPES[step["content_type"]]
            return store.patch(kind.name, namespace, name, step["body"], patch_type, subresource=subresource)[0].raw
    assert step["method"] == "DELETE"
    grace = parse_qs(url.query).get("gracePeriodSeconds")
    gone = store.delete(kind.name, namespace, name, grace_period_s=int(grace[0]) if grace else None)
    if kind.name in ("Pod", "PersistentVolumeClaim", "ResourceClaim") or store.find(kind.name, namespace, name):
        return gone.raw
    details = {"name": name, "group": kind.group, "kind": kind.plural, "uid": gone.uid}
    details = {field: value for field, value in details.items() if value}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
