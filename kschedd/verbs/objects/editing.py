"""edit: opens an object in the user's editor, and sends the changes as a patch.

If the object is rejected, it is opened again with the reasons above it, until the user saves it unchanged.
"""

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kschedd.api.schemas.kinds import Kind, kind_of
from kschedd.printing import documents
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    namespace_flags,
    output_flag,
    validate_flag,
    validation_of,
    verb,
)
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import get_object, selected, targets_of, where
from kschedd.verbs.objects.changing import FORMS, write_change

Raw = dict[str, Any]

_HEADER: Final = (
    "# Please edit the object below. Lines beginning with a '#' will be ignored,\n"
    "# and an empty file will abort the edit. If an error occurs while saving this file will be\n"
    "# reopened with the relevant failures.\n#\n"
)


def _words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="KIND NAME... | KIND/NAME")
    namespace_flags(words)
    validate_flag(words)
    output_flag(words, FORMS)


@verb(
    "edit",
    "Edit an object in $KUBE_EDITOR, $EDITOR or vi.",
    _words,
    examples=("edit deployment web", "edit pod/web-0"),
    completes="kinds",
)
def edit(session: VerbSession, options: argparse.Namespace) -> int:
    if session.open_editor is None:
        raise UsageError("edit requires a terminal and an editor; use `kschedd edit`, patch or replace -f FILE")
    failed = 0
    for kind, name, namespace in selected(session, targets_of(session, options.what, needs_name=True), options):
        failed += _edit_one(session, options, kind, get_object(session, kind, name, namespace))
    return 1 if failed else 0


def _edit_one(session: VerbSession, options: argparse.Namespace, kind: Kind, before: Raw) -> int:
    """Open the object in the editor until it is saved or left unchanged. Returns 1 if the object could not be saved."""
    meta = {name: value for name, value in before["metadata"].items() if name != "managedFields"}
    before = {**before, "metadata": meta}
    original = documents.as_yaml(before)
    body, faults = original, ""
    while True:
        edited, file = _in_editor(session, body, faults)
        if edited == body or not edited.strip():
            if not faults:
                file.unlink()
                session.write_error("Edit cancelled, no changes made.\n")
                return 0
            session.write_error(f'A copy of your changes has been stored to "{file}"\n')
            session.error("Edit cancelled, no valid changes were saved.")
            return 1
        file.unlink()
        if edited == original:
            session.write_error("Edit cancelled, no changes made.\n")
            return 0
        body = edited
        try:
            after = _parsed(edited)
            _check_identity(before, after)
            answer = session.daemon.call(
                "objects.patch",
                kind=kind.name,
                name=meta["name"],
                patch=merge_patch(before, after),
                type="merge",
                field_validation=validation_of(options),
                **where(kind, meta.get("namespace")),
            )
        except (RpcError, UsageError) as fault:
            faults = str(fault)
            session.error(faults)
            continue
        for warning in answer.get("warnings") or ():
            session.warn(warning)
        write_change(session, options, answer["object"], "edited")
        return 0


def _in_editor(session: VerbSession, body: str, faults: str) -> tuple[str, Path]:
    """Return the edited text without its leading comments, and the path of its file."""
    assert session.open_editor is not None, "checked before"
    comments = _HEADER + "".join(f"# {line}\n" for line in faults.splitlines()) + ("#\n" if faults else "")
    with tempfile.NamedTemporaryFile("w", prefix="kschedd-edit-", suffix=".yaml", delete=False) as opened:
        opened.write(comments + body)
    file = Path(opened.name)
    status = session.open_editor(file)
    if status:
        raise UsageError(f"there was a problem with the editor: it ended with status {status}; the text is in {file}")
    try:
        lines = file.read_text("utf-8").splitlines(keepends=True)
    except OSError as fault:
        raise UsageError(f"the editor left no file to read: {file}: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"The edited file failed validation: it is no UTF-8; the text is in {file}") from None
    start = next((place for place, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[start:]), file


def _parsed(text: str) -> Raw:
    from kschedd.api.text.documents import read_documents

    found = list(read_documents(text))
    for document in found:
        for fault in document.faults:
            raise UsageError(f"The edited file failed validation: line {fault.line}: {fault.why}")
    if len(found) != 1 or not isinstance(found[0].value, dict):
        raise UsageError("The edited file failed validation: one object is expected")
    value: Raw = found[0].value
    return value


def _check_identity(before: Raw, after: Raw) -> None:
    meta = after.get("metadata")
    named = meta.get("name") if isinstance(meta, dict) else None
    if kind_of(after) != kind_of(before) or named != before["metadata"]["name"]:
        raise UsageError("At least one of apiVersion, kind and name was changed")


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Raw:
    """Return the JSON merge patch (RFC 7386) that turns `before` into `after`."""
    patch: Raw = dict.fromkeys(name for name in before if name not in after)
    for name, value in after.items():
        old = before.get(name)
        if name in before and old == value:
            continue
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            value = merge_patch(old, value)
        patch[name] = value
    return patch
