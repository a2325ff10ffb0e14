"""Objects set aside at a start: those that cannot be read back, and those that somebody says to leave out.

A journal is whole and one object in it is not to be had: a version of kschedd that read it otherwise, a fault of ours
in taking it in, or whatever else about an object should end each start. Then the cluster starts without it. What was
written of it stays in the journal, for the next start to try, and is put beside the journal as a manifest to be looked
at, mended and applied again (where a new object takes its place meanwhile, that copy is all there is).

Nothing is deleted along with it: what belongs to it stays, as it would in a cluster of which only a part was loaded.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import attrs
import msgpack

from kschedd.api.kinds import lookup
from kschedd.api.objects import Object
from kschedd.errors import KscheddError
from kschedd.object_faults import ObjectRef, fault_text

FOLDER: Final = "set-aside"
LEFT_OUT: Final = "left out, as --leave-out says"
_LONGEST_NAME: Final = 180


@attrs.define(eq=False)
class LeaveOutError(KscheddError):
    """Text that names no object."""

    text: str

    def __str__(self) -> str:
        return f'--leave-out: "{self.text}" is not KIND/NAMESPACE/NAME, nor KIND/NAME of a kind without namespaces'


@attrs.frozen
class SetAside:
    """An object that the cluster started without."""

    ref: ObjectRef
    why: str
    file: Path | None  # where a copy of it is


@attrs.frozen(eq=False)
class Row:
    """An object as the journal has it."""

    ref: ObjectRef
    packed: bytes


def read_ref(text: str) -> ObjectRef:
    """The object that `KIND/NAMESPACE/NAME` or `KIND/NAME` means. Raises LeaveOutError."""
    word, *place = text.split("/")
    kind = lookup(word)
    if not word or not all(place) or len(place) not in (1, 2) or (kind.known and kind.namespaced != (len(place) == 2)):
        raise LeaveOutError(text)
    return ObjectRef(kind.name, place[0] if len(place) == 2 else "", place[-1])


def take_over(
    rows: Iterable[Row],
    leave_out: Collection[ObjectRef],
    read: Callable[[str, bytes], Object],
    place: Callable[[Object], None],
    folder: Path | None,
) -> list[SetAside]:
    """Read and place the objects one by one; those for which that is not to be, or goes wrong, are set aside."""
    aside: list[SetAside] = []
    for row in rows:
        why = LEFT_OUT if row.ref in leave_out else ""
        if not why:
            try:
                place(read(row.ref.kind, row.packed))
            except Exception as fault:  # the object's: it is set aside, and said
                why = str(fault) if isinstance(fault, KscheddError) else fault_text(fault)
        if why:
            aside.append(SetAside(row.ref, why, None if folder is None else _keep(row, folder)))
    return aside


def _keep(row: Row, folder: Path) -> Path:
    """Put a copy of the object into the folder, whole or not at all; the file's path."""
    folder.mkdir(mode=0o700, exist_ok=True)
    name = quote(".".join(part for part in (row.ref.kind, row.ref.namespace, row.ref.name) if part), safe="")
    if len(name) > _LONGEST_NAME:
        name = name[:_LONGEST_NAME] + sha256(name.encode()).hexdigest()[:16]
    data, suffix = _readable(row.packed)
    part = folder / f".{name}.part"
    opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(opened, "wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    return part.replace(folder / f"{name}.{suffix}")


def _readable(packed: bytes) -> tuple[bytes, str]:
    try:
        raw: Any = msgpack.unpackb(packed, strict_map_key=False)
        return json.dumps(raw, indent=2, default=str).encode() + b"\n", "json"
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return packed, "msgpack"
