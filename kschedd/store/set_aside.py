"""Objects set aside at startup: objects that cannot be restored, and objects that the user excluded (`--leave-out`).

An intact journal may contain an object that cannot be restored, because another kschedd version with other rules wrote
it, or because it triggers a bug. The cluster then starts without this object, instead of failing at every start. The
object's data stays in the journal, so the next start can try again. The data is also written to a file next to the
journal, where it can be inspected, corrected and applied again. (If a new object of that name is created, the file is
the only copy.)

The object's dependents are not deleted, because a partly loaded cluster also has dependents without owners.
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

from kschedd.api.objects import Object
from kschedd.api.schemas.kinds import lookup
from kschedd.errors import KscheddError
from kschedd.object_faults import ObjectRef, fault_text

FOLDER: Final = "set-aside"
LEFT_OUT: Final = "omitted because of --leave-out"
_LONGEST_NAME: Final = 180


@attrs.define(eq=False)
class LeaveOutError(KscheddError):
    """The error for `--leave-out` or `journal remove` with a value that names no object."""

    text: str
    flag: str

    def __str__(self) -> str:
        return f'{self.flag}: "{self.text}" must be KIND/NAMESPACE/NAME, or KIND/NAME for a cluster-scoped kind'


@attrs.frozen
class SetAside:
    """An object that was not restored at startup."""

    ref: ObjectRef
    why: str
    file: Path | None  # the copy of the object


@attrs.frozen(eq=False)
class Row:
    """An object as stored in the journal, unparsed."""

    ref: ObjectRef
    packed: bytes


def read_ref(text: str, flag: str = "--leave-out") -> ObjectRef:
    """Return the object named by `KIND/NAMESPACE/NAME` or `KIND/NAME`. Raises LeaveOutError."""
    word, *place = text.split("/")
    kind = lookup(word)
    if not word or not all(place) or len(place) not in (1, 2) or (kind.known and kind.namespaced != (len(place) == 2)):
        raise LeaveOutError(text, flag)
    return ObjectRef(kind.name, place[0] if len(place) == 2 else "", place[-1])


def take_over(
    rows: Iterable[Row],
    leave_out: Collection[ObjectRef],
    read: Callable[[str, bytes], Object],
    place: Callable[[Object], None],
    folder: Path | None,
) -> list[SetAside]:
    """Restore the objects one by one with `read` and `place`.

    Copy excluded objects, and objects that cannot be restored, to files, and return them.
    """
    aside: list[SetAside] = []
    for row in rows:
        why = LEFT_OUT if row.ref in leave_out else ""
        if not why:
            try:
                place(read(row.ref.kind, row.packed))
            except Exception as fault:  # an error of this object, which is then set aside
                why = str(fault) if isinstance(fault, KscheddError) else fault_text(fault)
        if why:
            aside.append(SetAside(row.ref, why, None if folder is None else keep_copy(row, folder)))
    return aside


def keep_copy(row: Row, folder: Path) -> Path:
    """Write a copy of the object to the folder atomically. Return the file's path."""
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
