"""The work of `objects.apply` (handler: `writing.py`): create or change objects from manifests, and report all errors.

Manifests are text or maps. An invalid document does not affect other documents, unless `atomic`. An error has a line
number if the manifest was text. Atomic applies and dry runs use a fork of the store, so that their objects may depend
on each other.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from kschedd.answers import ABSENT
from kschedd.api.manifests import Manifest, ManifestError, read_text
from kschedd.api.objects import Object
from kschedd.api.quantity import shown
from kschedd.api.schemas.fields import FieldError, required
from kschedd.api.schemas.weight import weight
from kschedd.api.text.documents import MOST_FAULTS
from kschedd.api.unsupported import Unsupported, unsupported
from kschedd.controllers.running.awaited import controllers_run_between
from kschedd.errors import without_traceback
from kschedd.managed_fields.entries import migrated
from kschedd.service.objects.answers import AppliedAnswer, FaultAnswer
from kschedd.service.operations.serving import serve
from kschedd.service.request import PatchBody, Request, Response, WriteOptions
from kschedd.service.workers import GivenUp
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import ApiError, Invalid, StrictDecodingError
from kschedd.store.managing import MANAGED, without_entries

Raw = dict[str, Any]
FROM_FILES: Final = WriteOptions(by_field=True, server_side=False)
"""The way `kubectl apply` applies files."""
_FREED = 64  # objects freed per step
_EACH = 20  # weight of defaulting, admitting and writing an object, in values
_OF_A_DUMP = (
    "objects that had a uid, as in a dump of a cluster, were created with others: objects that name them as owner "
    "are garbage collected. `kschedd load` loads a dump unchanged"
)


@attrs.frozen(eq=False)
class Wanted:
    """An object to apply, with its document."""

    raw: Raw
    source: str
    manifest: Manifest | None = None

    @property
    def line(self) -> int:
        return 0 if self.manifest is None else self.manifest.line

    def fault(self, wrong: FieldError) -> ManifestError:
        if self.manifest is not None:
            return self.manifest.error(wrong)
        return ManifestError(self.source, 0, wrong.path, wrong.value, wrong.why)


@attrs.frozen(eq=False)
class Parsed:
    wanted: list[Wanted]
    errors: tuple[FaultAnswer, ...]

    def free(self) -> None:
        """Free the parsed texts in steps, after all errors are reported."""
        while self.wanted:
            for one in self.wanted[-_FREED:]:
                if one.manifest is not None:
                    one.manifest.forget_lines()
            del self.wanted[-_FREED:]


def parse(manifests: Any, source: str, given_up: GivenUp | None = None) -> Parsed:
    """Return the objects in text, in a map, or in an array of maps. Reading stops after `MOST_FAULTS` errors."""
    if isinstance(manifests, str):
        reading = read_text(manifests, source, check=None if given_up is None else given_up.check)
        return Parsed(
            [Wanted(manifest.raw, source, manifest) for manifest in reading.manifests],
            tuple(_fault(error) for error in reading.errors),
        )
    wanted: list[Wanted] = []
    errors: list[FaultAnswer] = []
    several = isinstance(manifests, list)
    for number, value in enumerate(manifests if several else [manifests]):
        _unfold(value, f"{source}[{number}]" if several else source, wanted, errors)
        if len(errors) > MOST_FAULTS:
            why = f"too many errors ({MOST_FAULTS}); the rest was not read"
            errors[MOST_FAULTS:] = [_fault(ManifestError(f"{source}[{number}]", 0, "", None, why))]
            break
    return Parsed(wanted, tuple(errors))


def _unfold(value: Any, source: str, wanted: list[Wanted], errors: list[FaultAnswer], depth: int = 0) -> None:
    faults = []
    for field in ("apiVersion", "kind"):
        text = value.get(field)
        if not isinstance(text, str) or not text:
            why = "Required value" if text is None else f"Invalid value: {shown(text)}: must be text"
            faults.append(_fault(ManifestError(source, 0, field, text, why)))
    if faults:
        errors += faults
        return
    items = value.get("items")
    if not value["kind"].endswith("List") or "items" not in value:
        wanted.append(Wanted(value, source))
        return
    if not isinstance(items, list | None) or depth > 4:
        errors.append(_fault(ManifestError(source, 0, "items", None, "Invalid value: must be a list of objects")))
        return
    for number, item in enumerate(items or ()):
        if len(errors) > MOST_FAULTS:
            return
        where = f"{source}.items[{number}]"
        if not isinstance(item, dict):
            errors.append(_fault(ManifestError(where, 0, "", item, f"{shown(item)}: an object is a map")))
            continue
        if value["kind"] != "List" and "kind" not in item:
            item = {"apiVersion": value["apiVersion"], "kind": value["kind"].removesuffix("List"), **item}
        _unfold(item, where, wanted, errors, depth + 1)


def _fault(error: ManifestError, wanted: Wanted | None = None, code: str = "invalid") -> FaultAnswer:
    fault = FaultAnswer(error.file, error.line, error.path, error.value, error.why, str(error), code)
    if wanted is None:
        return fault
    meta = wanted.raw.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    name = str(meta.get("name") or meta.get("generateName") or "")
    return attrs.evolve(fault, kind=str(wanted.raw.get("kind")), namespace=str(meta.get("namespace") or ""), name=name)


@attrs.frozen(eq=False)
class AppliedObject:
    """An applied object, and its kind's resource name."""

    object: Object
    action: str
    resource: str

    def answer(self, with_object: bool) -> AppliedAnswer:
        obj = self.object
        shown = without_entries(obj.raw) if with_object else ABSENT
        return AppliedAnswer(obj.kind, obj.namespace, obj.name, self.action, self.resource, shown)


@attrs.define(eq=False)
class ApplyOutcome:
    """The outcome of applying. `tell` adds the rejections later, because finding their line numbers takes time."""

    results: list[AppliedObject] = attrs.field(factory=list)
    errors: list[FaultAnswer] = attrs.field(factory=list)
    warnings: list[str] = attrs.field(factory=list)
    unsupported: list[Unsupported] = attrs.field(factory=list)
    refused: list[tuple[Wanted, ApiError]] = attrs.field(factory=list)

    def tell(self) -> "ApplyOutcome":
        """Return this outcome, with its rejections among the errors."""
        for one, refusal in self.refused:
            if isinstance(refusal, Invalid | StrictDecodingError):
                self.errors += [_fault(one.fault(fault), one) for fault in refusal.faults]
            else:
                error = ManifestError(one.source, one.line, "", None, str(refusal))
                self.errors.append(_fault(error, one, refusal.rpc_code))
        self.refused.clear()
        return self

    def adopted(self, here: Callable[[Object], Object]) -> "ApplyOutcome":
        """Return this outcome, with `here(object)` in place of each object."""
        self.results = [attrs.evolve(each, object=here(each.object)) for each in self.results]
        return self

    def add(self, other: "ApplyOutcome") -> None:
        self.results.extend(other.results)
        self.errors.extend(other.errors)
        self.refused.extend(other.refused)
        self.warnings.extend(text for text in other.warnings if text not in self.warnings)
        self.unsupported.extend(other.unsupported)


@attrs.frozen(eq=False)
class Applier:
    """Applies manifests for a user, in a series of requests. Objects without a namespace are created in `namespace`."""

    options: WriteOptions = FROM_FILES
    namespace: str = "default"
    user: UserInfo | None = None

    def each(self, wanted: Iterable[Wanted], store: ClusterWriter, given_up: GivenUp | None = None) -> ApplyOutcome:
        """Apply the objects one after the other; rejected objects are recorded and do not prevent the others."""
        outcome = ApplyOutcome()
        for one in wanted:
            if given_up is not None:
                given_up.check()
            try:
                request = self._request_for(store, one.raw)
                response = serve(store, request)
                if (
                    self.options.server_side
                    and response.action != "created"
                    and self._migrates(store, request, response)
                ):
                    response = attrs.evolve(serve(store, request), action=response.action)
            except ApiError as refusal:
                outcome.refused.append((one, without_traceback(refusal)))
                continue
            _note(outcome, one, response, store)
        return outcome

    def _migrates(self, store: ClusterWriter, request: Request, response: Response) -> bool:
        """Return whether fields of client-side apply were moved to the field manager, which must then apply again."""
        obj = response.object
        entries = migrated(obj.metadata.get(MANAGED), self.options.manager)
        if entries is None:
            return False
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": str(obj.resource_version)}
        patch = [{"op": "replace", "path": f"/metadata/{MANAGED}", "value": entries}, version]
        serve(store, attrs.evolve(request, verb="patch", body=PatchBody("json", patch)))
        return True

    def _request_for(self, store: ClusterWriter, raw: Raw) -> Request:
        namespace = namespace_for(raw, self.namespace)
        if not self.options.server_side:
            return Request("apply", namespace=namespace, body=raw, options=self.options, user=self.user)
        kind = store.kind_of(raw)
        meta = raw.get("metadata")
        meta = meta if isinstance(meta, dict) else {}
        name, given = meta.get("name"), meta.get("namespace") or namespace or "default"
        if not name or not isinstance(name, str) or not isinstance(given, str):
            raise Invalid(kind.name, "", (required("metadata.name", "what is applied by the server is named"),))
        where = given if kind.namespaced else ""
        return Request("apply", kind.name, where, name, body=raw, options=self.options, user=self.user)


def _note(outcome: ApplyOutcome, one: Wanted, response: Response, store: ClusterWriter) -> None:
    """Record the outcome of one object."""
    obj = response.object
    outcome.results.append(AppliedObject(obj, response.action, store.kind_of(obj.raw).resource))
    if response.warnings:  # the text is parsed a second time to find the line
        where = f"{one.source}:{one.line}: " if one.line else ""
        outcome.warnings += [f"{where}{obj.kind} {obj.name}: {text}" for text in response.warnings]
    created = response.action == "created"
    if created and one.raw["metadata"].get("uid") and _OF_A_DUMP not in outcome.warnings:
        outcome.warnings.append(_OF_A_DUMP)
    outcome.unsupported += unsupported(obj.raw, jobs_finish=response.jobs_finish)


def namespace_for(raw: Raw, namespace: str) -> str:
    """Return the request's namespace for an object in `namespace`; "" means its own or the default namespace."""
    meta = raw.get("metadata")
    if namespace == "default" or (isinstance(meta, dict) and meta.get("namespace")):
        return ""
    return namespace


def chunks(wanted: Sequence[Wanted], heaviest: int) -> Iterator[Sequence[Wanted]]:
    """Yield the objects in parts of at most this weight; the weight of an object is its number of values plus `_EACH`.

    An object that exceeds this weight is a part by itself. A part also ends where controllers must run before the next
    object.
    """
    portion: list[Wanted] = []
    weighs = 0
    for one in wanted:
        more = weight(one.raw, heaviest) + _EACH
        if portion and (weighs + more > heaviest or controllers_run_between(portion[-1].raw, one.raw)):
            yield portion
            portion, weighs = [], 0
        portion.append(one)
        weighs += more
    if portion:
        yield portion
