"""Conversion of a server's objects to their stored form: current version, defaults, no unknown fields.

The result depends only on the object, so that objects of the server and local objects can be compared.
"""

from collections.abc import Callable, Container, Hashable, Iterable
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.dumps.conversion import current
from kschedd.dumps.dumped_condition import with_condition
from kschedd.store.errors import ApiError
from kschedd.store.importing import Importer

Raw = dict[str, Any]

_IDENTITY: Final = ("name", "uid", "resourceVersion")  # fields of metadata


def as_held(
    given: Iterable[tuple[Raw, Hashable]],
    leave_out: Callable[[Raw, str], None],
    tell: Callable[[str], None],
    own: Container[str],
    importer: Importer,
) -> list[Object]:
    """Return the objects in their stored form; each given object is paired with its likeness, or None (`Importer`).

    `leave_out` is called with each object that cannot be stored and the reason, `tell` with a message for each dropped
    field. `own` contains the schedulers whose pods this daemon schedules. If another scheduler left the pod pending,
    the condition from that scheduler is stored for `explain`.
    """

    def refuse(raw: Raw, refusal: ApiError) -> None:
        leave_out(raw, str(refusal))

    def drop(raw: Raw, warning: str) -> None:
        tell(f"{raw['kind']}: {warning}, dropped")

    usable = []
    for raw, likeness in given:
        if missing := [field for field in _IDENTITY if not is_text(raw["metadata"].get(field))]:
            leave_out(raw, f"it has no {missing[0]}")
        else:
            taken = _as_taken(raw, own)
            usable.append((taken, likeness if taken is raw else None))
    return importer.take(usable, refuse, drop)


def new_importer() -> Importer:
    return Importer(lambda: 0.0)


def is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _as_taken(raw: Raw, own: Container[str]) -> Raw:
    if raw["kind"] != "Pod" or _scheduler_of(raw) in own:
        return current(raw)
    return with_condition(current(raw), None)


def _scheduler_of(pod: Raw) -> str:
    spec = pod.get("spec")
    name = spec.get("schedulerName") if isinstance(spec, dict) else None
    return name if isinstance(name, str) and name else "default-scheduler"
