"""apply and create -f, delete -f: objects from files, directories and standard input.

The client sends the text of the files unchanged, so that the daemon's errors contain the user's files and lines.
"""

import argparse
import bisect
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from kschedd.api.schemas.kinds import lookup
from kschedd.api.text.portions import portions
from kschedd.api.text.text_files import NotText, text_of
from kschedd.input_files import MANIFEST_SUFFIXES, manifest_files
from kschedd.limits import MAX_REQUEST_BYTES
from kschedd.verbs.command_line.grammar import (
    Output,
    UsageError,
    VerbParser,
    dry_run_flag,
    output_flag,
    output_of,
    validate_flag,
    validation_of,
    verb,
)
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.session import VerbSession

_FORMS = ("table", "name", "json", "yaml")
_SERVER_SIDE = "kubectl"  # field manager of client-side apply in kubectl, whose fields a server-side apply takes over
_CLIENT_SIDE = "kubectl-client-side-apply"


if TYPE_CHECKING:
    from kschedd.api.manifests import Manifest


@attrs.frozen
class Source:
    """The text of a file, and the file's name in error messages."""

    name: str
    text: str


def file_flag(words: VerbParser, *, needed: bool) -> None:
    words.add_argument(
        "-f",
        "--filename",
        type=path_text,
        action="append",
        default=[],
        required=needed,
        metavar="FILE",
        help="a file, a folder (read recursively), or - for standard input; may be repeated",
    )
    words.add_argument(
        "-R",
        "--recursive",
        action="store_true",
        help="no effect: folders are always read recursively",
    )


def sources_of(session: VerbSession, names: Sequence[str]) -> tuple[list[Source], int]:
    """Read the files in order.

    Return their texts, and the number of unreadable files, whose errors are printed.
    """
    sources: list[Source] = []
    failed = 0
    for name in names:
        if "://" in name:
            session.error(f"{name}: addresses are not fetched; download the file and give its path")
            failed += 1
            continue
        try:
            if name == "-":
                failed += _take(session, sources, "-", session.read_input())
                continue
            whole = session.folder / name
            files = manifest_files(whole)
            if not files:
                session.error(f"{name}: no {', '.join(MANIFEST_SUFFIXES)} files in this folder")
                failed += 1
            for file in files:
                within = "" if file == whole else f"/{file.relative_to(whole)}"
                failed += _take(session, sources, f"{name.rstrip('/')}{within}", file.read_bytes())
        except OSError as wrong:
            session.error(f"{'standard input' if name == '-' else name}: cannot be read: {wrong.strerror or wrong}")
            failed += 1
    return sources, failed


def _take(session: VerbSession, sources: list[Source], name: str, data: bytes) -> int:
    try:
        sources.append(Source(name, text_of(data).removeprefix("\ufeff")))
    except NotText as wrong:
        session.error(f"{name}:{wrong.line}: {wrong.why}")
        return 1
    return 0


# -- apply ----------------------------------------------------------------------------------------------------------


def _apply_words(words: VerbParser) -> None:
    file_flag(words, needed=True)
    words.add_argument("-n", "--namespace", metavar="NS", help="namespace of objects that have none")
    words.add_argument("--atomic", action="store_true", help="apply no object if any is invalid")
    words.add_argument(
        "--server-side", action="store_true", help="apply on the server; a field manager owns the applied fields"
    )
    words.add_argument(
        "--force-conflicts",
        action="store_true",
        help="overwrite fields of other field managers (requires --server-side)",
    )
    words.add_argument("--field-manager", metavar="NAME", default="", help="name of the field manager")
    dry_run_flag(words)
    validate_flag(words)
    output_flag(words, _FORMS)


def _manager(options: argparse.Namespace) -> str:
    if options.force_conflicts and not options.server_side:
        raise UsageError("--force-conflicts only works with --server-side")
    return options.field_manager or (_SERVER_SIDE if options.server_side else _CLIENT_SIDE)


@verb(
    "apply",
    "Create or change objects from manifests.",
    _apply_words,
    examples=("apply -f cluster.yaml", "apply -f manifests/ --dry-run", "apply -f - --atomic"),
)
def apply(session: VerbSession, options: argparse.Namespace) -> int:
    """Apply every object.

    Unless --atomic is set, the valid objects of a file are applied even if others are invalid.
    """
    output = output_of(options.output, _FORMS)
    sources, unreadable = sources_of(session, options.filename)
    if unreadable and options.atomic:
        session.error("nothing was applied (--atomic)")
        return 1
    flags = {
        "dry_run": options.dry_run != "none",
        "atomic": options.atomic,
        "field_validation": validation_of(options),
        "namespace": (options.namespace or "").removeprefix("=") or session.namespace,
        "field_manager": _manager(options),
        "server_side": options.server_side,
        "force_conflicts": options.force_conflicts,
    }
    answers: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    limit = request_limit(session, sum(len(source.text) for source in sources))
    # An atomic apply of several files must be one call, so their texts are joined, and line numbers of errors are
    # converted.
    for joined in [_Joined(sources)] if options.atomic and sources else [_Joined([source]) for source in sources]:
        if options.atomic and joined.size > limit:
            session.error(
                f"Request entity too large: limit is {limit}: what is --atomic has to be one request, and this is "
                f"{joined.size} bytes; apply it without, in parts, or run the daemon with --max-request-body-bytes"
            )
            return 1
        for part in joined.portions(limit):
            if part.size <= limit:
                answer = session.daemon.call("objects.apply", manifests=part.text, source=part.name, **flags)
                answers.append(answer)
                errors += [part.placed(error) for error in answer.get("errors") or ()]
            else:
                several, wrong = _apply_each(session, part, flags, limit)
                answers += several
                errors += wrong
    results = [result for answer in answers for result in answer.get("results") or ()]
    if options.server_side and output.form not in ("json", "yaml"):
        results = [{**result, "action": "serverside-applied"} for result in results]
    _report(session, output, answers, results, errors, dry_run=bool(flags["dry_run"]))
    if not results and not errors and not unreadable:
        session.error("no objects found")
        return 1
    return 1 if errors or unreadable else 0


def _report(
    session: VerbSession,
    output: Output,
    answers: Sequence[dict[str, Any]],
    results: Sequence[dict[str, Any]],
    errors: Sequence[dict[str, Any]],
    *,
    dry_run: bool,
) -> None:
    warnings = list(dict.fromkeys(text for answer in answers for text in answer.get("warnings") or ()))
    for warning in warnings:
        session.warn(warning)
    session.warn_unsupported(answers)
    if output.form in ("json", "yaml"):
        from kschedd.printing import documents

        whole = {"results": list(results), "errors": list(errors), "warnings": warnings}
        session.write(documents.as_json(whole) if output.form == "json" else documents.as_yaml(whole))
    else:
        tail = " (dry run)" if dry_run else ""
        for result in results:
            name = reference(result)
            session.write(f"{name}\n" if output.form == "name" else f"{name} {result['action']}{tail}\n")
    # each text only once, because the API server checks some fields twice
    for text in dict.fromkeys(fault_text(error) for error in errors):
        session.error(text)


def reference(result: dict[str, Any]) -> str:
    """Return kubectl's name for a result, such as `deployment.apps/web`."""
    resource = result.get("resource") or lookup(str(result.get("kind", ""))).resource
    return f"{resource}/{result.get('name', '')}"


def fault_text(error: dict[str, Any]) -> str:
    """Return the message for an error in a manifest: file, line, object, field and allowed values."""
    source, at = error.get("source") or "-", error.get("line")
    where = f"{'standard input' if source == '-' else source}{f':{at}' if at else ''}"
    why = str(error.get("why") or error.get("message") or "is wrong")
    if error.get("code") == "no_match":
        return f"{where}: {no_mapping(source, error.get('name'), error.get('namespace'), why)}"
    parts = [where]
    if error.get("kind") and error.get("name"):
        name = f"{error['namespace']}/{error['name']}" if error.get("namespace") else error["name"]
        parts.append(f"{error['kind']} {name}")
    if error.get("path"):
        parts.append(str(error["path"]))
    return ": ".join([*parts, why])


def no_mapping(source: str, name: Any, namespace: Any, why: str) -> str:
    """Return kubectl's message for an object whose kind does not exist."""
    which = f'name: "{name or ""}" namespace: "{namespace or ""}" from "{source}"'
    return f"resource mapping not found for {which}: {why}\nensure CRDs are installed first"


def request_limit(session: VerbSession, size: int) -> int:
    """Return the maximum request size in bytes.

    The daemon is called only if `size` is large.
    """
    if size < MAX_REQUEST_BYTES // 16:
        return MAX_REQUEST_BYTES
    return int(session.daemon.call("rpc.ping").get("max_request_body_bytes") or MAX_REQUEST_BYTES)


class _Joined:
    """Several sources joined to one text, which converts line numbers back to those of the sources."""

    def __init__(self, sources: Sequence[Source], after: int = 0) -> None:
        self._sources = sources
        self._after = after  # number of the source's lines before this text
        self._starts: list[int] = []
        pieces = []
        at = 0
        for source in sources:
            self._starts.append(at)
            piece = source.text if source.text.endswith("\n") or len(sources) == 1 else source.text + "\n"
            if len(sources) > 1:
                piece += "---\n"
            pieces.append(piece)
            at += piece.count("\n")
        self.text = "".join(pieces)

    @property
    def name(self) -> str:
        return self._sources[0].name if len(self._sources) == 1 else "-"

    @property
    def size(self) -> int:
        return len(self.text.encode("utf-8", "replace"))

    def portions(self, most: int) -> "Iterator[_Joined]":
        """Yield the text in parts of at most `most` bytes, without splitting documents."""
        if len(self._sources) > 1 or self.size <= most:
            yield self
            return
        for text, after in portions(self.text, most):
            yield _Joined([Source(self.name, text)], after)

    def placed(self, error: dict[str, Any]) -> dict[str, Any]:
        """Return the error with the file, and its line in that file."""
        if not error.get("line"):
            return error
        if len(self._sources) == 1:
            return {**error, "line": int(error["line"]) + self._after} if self._after else error
        number = bisect.bisect_right(self._starts, int(error["line"]) - 1) - 1
        return {**error, "source": self._sources[number].name, "line": int(error["line"]) - self._starts[number]}


def _apply_each(
    session: VerbSession, joined: _Joined, flags: dict[str, Any], limit: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Apply a List that is too large for one request: its objects are sent one by one.

    Return the results, and the errors, each with its line."""
    import msgpack

    from kschedd.api.manifests import read_text

    reading = read_text(joined.text, joined.name)
    wrong = [joined.placed(_fields(fault)) for fault in reading.errors]
    raws: list[list[dict[str, Any]]] = []
    held = 0
    places = {}
    for manifest in reading.manifests:
        raw = manifest.raw
        size = len(msgpack.packb(raw))
        if size > limit:
            why = f"Request entity too large: limit is {limit}, and this object takes {size} bytes"
            wrong.append(joined.placed({"source": joined.name, "line": manifest.line, "why": why}))
            continue
        if not raws or held + size > limit:
            raws.append([])
            held = 0
        raws[-1].append(raw)
        held += size
        places[str(raw.get("kind")), *_named(raw.get("metadata"))] = manifest
    answers = []
    for portion in raws:
        answer = session.daemon.call("objects.apply", manifests=portion, source=joined.name, **flags)
        answers.append(answer)
        for error in answer.get("errors") or ():
            found = places.get((str(error.get("kind")), *_named(error)))
            line = found.locate(str(error.get("path") or "")) if found else 0
            wrong.append(joined.placed({**error, "source": joined.name, "line": line}))
    return answers, wrong


def _named(meta: Any) -> tuple[str, str]:
    """Return the namespace and the name in metadata, or raise an error."""
    found = meta if isinstance(meta, dict) else {}
    return str(found.get("namespace") or ""), str(found.get("name") or found.get("generateName") or "")


def _fields(fault: Any) -> dict[str, Any]:
    return {"source": fault.file, "line": fault.line, "path": fault.path, "value": fault.value, "why": fault.why}


def read_objects(
    session: VerbSession, names: Sequence[str], namespace: str
) -> tuple[list[tuple[str, dict[str, Any]]], int]:
    """Return the source and content of every object in the files, and the number of printed errors."""
    found, failed = read_manifests(session, names, namespace)
    return [(f"{manifest.source}:{manifest.line}", raw) for manifest, raw in found], failed


def read_manifests(
    session: VerbSession, names: Sequence[str], namespace: str
) -> tuple[list[tuple["Manifest", dict[str, Any]]], int]:
    """Return every object in the files, with its namespace, and the number of printed errors."""
    from kschedd.api.manifests import read_text
    from kschedd.api.schemas.kinds import kind_of

    sources, failed = sources_of(session, names)
    objects: list[tuple[Manifest, dict[str, Any]]] = []
    for source in sources:
        reading = read_text(source.text, source.name)
        for fault in reading.errors:
            session.error(fault_text(_fields(fault)))
            failed += 1
        for manifest in reading.manifests:
            raw = manifest.raw
            meta = raw.get("metadata")
            if isinstance(meta, dict) and kind_of(raw).namespaced and not meta.get("namespace"):
                raw = {**raw, "metadata": {**meta, "namespace": namespace}}
            objects.append((manifest, raw))
    if not objects and not failed:
        raise UsageError("the files contain no objects")
    return objects, failed
