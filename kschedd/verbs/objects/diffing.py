"""diff: the changes that `apply` would make, as a unified diff; fork diff: the changes in a fork since its creation.

The exit status is the same as in kubectl: 0 no changes, 1 changes, 2 an error.
"""

import argparse
import difflib
from collections.abc import Iterator
from typing import Any, Final

from kschedd.api.schemas.kinds import kind_of
from kschedd.api.text.portions import portions
from kschedd.limits import MAX_REQUEST_BYTES
from kschedd.printing import documents
from kschedd.printing.reports.forks import diff_text, is_different
from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import VerbParser, output_flag, verb, whole_number
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.objects.manifests import fault_text, file_flag, sources_of
from kschedd.verbs.objects.waiting import find_object

Raw = dict[str, Any]

SAME, DIFFERENT, FAILED = 0, 1, 2
_MASKED: Final = "***"


def _words(words: VerbParser) -> None:
    file_flag(words, needed=True)
    words.add_argument("-n", "--namespace", metavar="NS", help="namespace of objects that have none")
    words.add_argument("--show-managed-fields", action="store_true", help="show metadata.managedFields")


@verb(
    "diff",
    "Show what apply would change. Exit status: 0 nothing, 1 something, 2 an error.",
    _words,
    examples=("diff -f cluster.yaml", "diff -f manifests/"),
    failed=FAILED,
)
def diff(session: VerbSession, options: argparse.Namespace) -> int:
    sources, failed = sources_of(session, options.filename)
    namespace = (options.namespace or "").removeprefix("=") or session.namespace
    different = False
    for source in sources:
        for text, after in portions(source.text, MAX_REQUEST_BYTES):
            answer = session.daemon.call(
                "objects.apply",
                manifests=text,
                source=source.name,
                namespace=namespace,
                dry_run=True,
                with_objects=True,
            )
            for result in answer["results"]:
                text = "".join(_changes(session, result, managed_fields=options.show_managed_fields))
                session.write(text)
                different = different or bool(text)
            for error in answer["errors"]:
                line = error.get("line")
                session.error(fault_text({**error, "line": line + after} if line else error))
                failed += 1
    return FAILED if failed else DIFFERENT if different else SAME


def _fork_words(words: VerbParser) -> None:
    words.add_argument("fork", metavar="FORK", help="a name that `fork list` shows")
    words.add_argument("--limit", type=whole_number, default=100, metavar="N", help="print at most N pods (100)")
    output_flag(words, FORMS)


@verb(
    "fork diff",
    "Show the changes in a fork since it was created. Exit status: 0 nothing, 1 something, 2 an error.",
    _fork_words,
    whole="fork diff",
    examples=("fork diff what-if", "fork diff what-if -o json"),
    completes="fork",
    failed=FAILED,
)
def fork_diff(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("fork.diff", fork=options.fork)
    if not write_answer(session, options.output, found):
        session.write(diff_text(found, session.style, options.limit))
    return DIFFERENT if is_different(found) else SAME


def _changes(session: VerbSession, result: Raw, *, managed_fields: bool) -> Iterator[str]:
    """Yield the lines of the diff of one object; none if the object is unchanged."""
    after: Raw = result["object"]
    if result["action"] == "unchanged":
        return
    kind = kind_of(after)
    meta = after["metadata"]
    found = find_object(session, kind, meta["name"], meta.get("namespace"))
    before: Raw | None = None if found is None else dict(found)
    if before is not None and kind.name == "Secret":
        before, after = _masked(before, after)
    name = ".".join([*kind.api_version.split("/"), kind.name, meta.get("namespace", ""), meta["name"]])
    # A dry run sets a new resourceVersion, which is not a difference.
    version = None if before is None else before["metadata"].get("resourceVersion")
    old = [] if before is None else _lines(before, version, managed_fields)
    new = _lines(after, version, managed_fields)
    lines = list(difflib.unified_diff(old, new, f"LIVE/{name}", f"MERGED/{name}"))
    if lines:
        yield f"diff -u -N LIVE/{name} MERGED/{name}\n"
        yield from lines


def _lines(raw: Raw, version: Any, managed_fields: bool) -> list[str]:
    left_out = {"resourceVersion"} if managed_fields else {"resourceVersion", "managedFields"}
    meta = {name: value for name, value in raw["metadata"].items() if name not in left_out}
    if version is not None:
        meta["resourceVersion"] = version
    return documents.as_yaml({**raw, "metadata": meta}).splitlines(keepends=True)


def _masked(before: Raw, after: Raw) -> tuple[Raw, Raw]:
    """Return a Secret before and after, with its data hidden and changed values marked."""
    old, new = dict(before.get("data") or {}), dict(after.get("data") or {})
    for key in {*old, *new}:
        differs = key in old and key in new and old[key] != new[key]
        if key in old:
            old[key] = f"{_MASKED} (before)" if differs else _MASKED
        if key in new:
            new[key] = f"{_MASKED} (after)" if differs else _MASKED
    return {**before, "data": old}, {**after, "data": new}
