"""Validation of out-of-tree plugins' return values, and conversion to exact built-in values.

Each function takes a method's return value. The function returns the value for the scheduler, or raises BadAnswer with
the actual and the required value. The functions run in the plugin's thread and within its time limit, because reading a
plugin's value may run plugin code (`__len__`, `__eq__`, a generator). The returned values do not refer to plugin
objects, so that comparing, hashing or printing them runs no plugin code. Callables are the exception; they are wrapped
by the guard.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from itertools import islice
from typing import Any, Final, Never

import attrs
import numpy as np

from kschedd.api.pods import Pod
from kschedd.api.read_only import ReadOnlyPod
from kschedd.cache.table import Ints
from kschedd.framework.events import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    CustomResource,
    EventResource,
    QueueingHint,
)
from kschedd.framework.fast_path import IDLE_POINTS
from kschedd.framework.faults import BadAnswer, plain_text, shown
from kschedd.framework.interface import PostFilterResult, PreFilterResult
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import Bind, Create, Delete, MergePatch, Plan, Update, Write

Answer = Status | int | None
"""The result of `filter` or `score` for a node."""

MOST_PROCESSES: Final = 16  # largest allowed value of a plugin's `worker_processes`
_INT64: Final = np.iinfo(np.int64)
_LARGEST_CODE: Final = (1 << 31) - 1
_MOST: Final = 1000  # maximum number of reasons, writes or registrations
_DEEPEST: Final = 32
_VERDICTS: Final = (Code.SUCCESS, Code.ERROR, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING)


def _wrong(method: str, value: object, expected: str) -> Never:
    raise BadAnswer(f"{method} returned {shown(value)}; {expected} is expected")


def text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadAnswer(f"{what} is {shown(value)}; a text is expected")
    return plain_text(value)


def number(what: str, value: object) -> float:
    """Return a number of seconds, which must be finite and not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise BadAnswer(f"{what} is {shown(value)}; a number of seconds is expected")
    if not 0 <= value < math.inf:
        raise BadAnswer(f"{what} is {shown(value)}; a number of seconds of at least 0 is expected")
    return min(float(value), 1e9) if value < 1e9 else 1e9


# -- statuses ------------------------------------------------------------------------------------------------------


def status(method: str, value: object, plugin: str, *more: Code) -> Status | None:
    """Return a Status or None.

    `more` contains additional codes that this method may return.
    """
    if value is None:
        return None
    if not isinstance(value, Status):
        _wrong(method, value, "a Status or None")
    code, reasons = value.code, value.reasons
    if not isinstance(code, Code):
        raise BadAnswer(f"{method} returned a Status whose code is {shown(code)}; a Code is expected")
    if code not in _VERDICTS and code not in more:
        allowed = ", ".join(c.name for c in (*_VERDICTS, *more))
        raise BadAnswer(f"{method} returned a Status of {code.name}; allowed are {allowed}")
    if not isinstance(reasons, tuple | list) or len(reasons) > _MOST:
        raise BadAnswer(f"{method} returned a Status whose reasons are {shown(reasons)}; a tuple of texts is expected")
    texts = tuple([text(f"a reason in the Status that {method} returned", reason) for reason in reasons])
    return Status(code, texts, plugin)


def rejection(method: str, value: object, plugin: str) -> Status:
    """Return the status of a vector filter's code, which must be a rejection."""
    found = status(method, value, plugin)
    if found is None or not found.rejected:
        _wrong(method, value, "a Status that rejects (Unschedulable, UnschedulableAndUnresolvable, Pending)")
    return found


# -- columns and scores --------------------------------------------------------------------------------------------


def column(method: str, value: object, rows: int) -> Ints:
    """Return a copy with one int64 per row."""
    expected = f"an int64 array of {rows} values, one for each row,"
    if isinstance(value, np.ndarray):
        array = value
    elif isinstance(value, list | tuple):
        array = np.array(value) if all(type(item) is int for item in value) else np.array(value, dtype=np.object_)
    else:
        _wrong(method, value, expected)
    if array.dtype.kind not in "iu" and array.size:
        raise BadAnswer(f"{method} returned values of {array.dtype.name}; {expected} is expected")
    if array.shape != (rows,):
        raise BadAnswer(f"{method} returned an array of shape {array.shape}; {expected} is expected")
    if array.dtype.kind == "u" and array.size and array.max() > _INT64.max:
        raise BadAnswer(f"{method} returned {array.max()}; {expected} is expected")
    return np.array(array, dtype=np.int64)  # a copy


def codes(method: str, value: object, rows: int) -> Ints | None:
    if value is None:
        return None
    found = column(method, value, rows)
    if rows and (found.min() < 0 or found.max() > _LARGEST_CODE):
        worst = found.min() if found.min() < 0 else found.max()
        raise BadAnswer(f"{method} returned the code {worst}; codes from 0 (passes) to {_LARGEST_CODE} are expected")
    return found


def score(method: str, value: object, plugin: str) -> int | Status:
    if isinstance(value, Status):
        found = status(method, value, plugin)
        assert found is not None, "a Status is one"
        return found
    if isinstance(value, bool | Enum) or not isinstance(value, int | np.integer):
        _wrong(method, value, "an int from 0 to 100")
    if not _INT64.min <= value <= _INT64.max:
        _wrong(method, value, "an int from 0 to 100")
    return int(value)


# -- plain values --------------------------------------------------------------------------------------------------


def flag(method: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        _wrong(method, value, "True or False")
    return bool(value)


def process_count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_PROCESSES:
        _wrong("worker_processes", value, f"a number from 0 to {MOST_PROCESSES}")
    return int(value)


def plain_key(method: str, value: object, depth: int = 0) -> Hashable:
    """Return a hashable of numbers, strings, None, tuples and frozensets; comparing it runs no plugin code."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating) and not math.isnan(value):
        return float(value)
    if isinstance(value, str):
        return str.encode(value, "utf-8", "backslashreplace").decode()
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, tuple | frozenset) and depth < _DEEPEST:
        items = [plain_key(method, item, depth + 1) for item in value]
        return tuple(items) if isinstance(value, tuple) else frozenset(items)
    return _wrong(method, value, "a number (not NaN), a text, None, or a tuple of such")


def sort_key(method: str, value: object) -> tuple[Any, ...]:
    """Return the key in a form in which any two keys are comparable: the rank of its type precedes each value."""
    return _ranked(method, plain_key(method, value))


def _ranked(method: str, value: object) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, int | float):
        return (1, value)
    if isinstance(value, str):
        return (2, value)
    if isinstance(value, bytes):
        return (3, value)
    if isinstance(value, tuple):
        return (4, tuple([_ranked(method, item) for item in value]))
    return _wrong(method, value, "a number, a text, None, or a tuple of such")  # sets have no order


def _json(what: str, value: object, depth: int = 0) -> Any:
    """Return a copy of a JSON value."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and _INT64.min <= value <= _INT64.max:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        return str.encode(value, "utf-8", "backslashreplace").decode()
    if depth < _DEEPEST:
        if isinstance(value, Mapping):
            return {text(f"a key in {what}", key): _json(what, item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [_json(what, item, depth + 1) for item in value]
    raise BadAnswer(f"{what} has {shown(value)}; a JSON value is expected")


# -- PreFilter and PostFilter --------------------------------------------------------------------------------------


def pre_filter(method: str, value: object, plugin: str) -> Status | PreFilterResult | None:
    if not isinstance(value, PreFilterResult):
        if value is not None and not isinstance(value, Status):
            _wrong(method, value, "a Status, a PreFilterResult or None")
        return status(method, value, plugin, Code.SKIP)
    names = value.node_names
    if not isinstance(names, set | frozenset | list | tuple):
        raise BadAnswer(f"{method} returned a PreFilterResult to {shown(names)}; a frozenset of node names is expected")
    found = frozenset([text(f"a node's name in the PreFilterResult that {method} returned", name) for name in names])
    return PreFilterResult(found, flag(f"{method}'s PreFilterResult.already_filtered", value.already_filtered))


def post_filter(method: str, value: object, plugin: str, pod_of: Callable[[str], Pod | None]) -> PostFilterResult:
    """Return the validated result. `pod_of` returns the assigned pod with a uid, or None."""
    if not isinstance(value, PostFilterResult):
        _wrong(method, value, "a PostFilterResult")
    reasons = status(method, value.status, plugin)
    if reasons is None:
        raise BadAnswer(f"{method} returned a PostFilterResult without a status; a Status is expected")
    nominated = value.nominated_node
    return PostFilterResult(
        reasons,
        None if nominated is None else text(f"nominated_node in what {method} returned", nominated),
        _pods(f"victims in what {method} returned", value.victims, pod_of),
        writes(f"writes in what {method} returned", value.writes),
        _pods(f"rejected in what {method} returned", value.rejected, pod_of),
    )


def _pods(what: str, value: object, pod_of: Callable[[str], Pod | None]) -> tuple[Pod, ...]:
    if not isinstance(value, tuple | list):
        raise BadAnswer(f"{what} is {shown(value)}; a tuple of pods is expected")
    found = []
    for item in value:
        pod = pod_of(item.uid) if isinstance(item, ReadOnlyPod) else None
        if pod is None:
            raise BadAnswer(f"{what} has {shown(item)}; an assigned pod that was passed to the plugin is expected")
        found.append(pod)
    return tuple(found)


# -- writes and plans ----------------------------------------------------------------------------------------------

_TEXTS: Final = {
    Bind: ("namespace", "name", "uid", "node_name"),
    MergePatch: ("kind", "namespace", "name"),
    Delete: ("kind", "namespace", "name", "uid"),
}
_SUBRESOURCES: Final = ("", "status", "scale")
_PROPAGATIONS: Final = ("Background", "Foreground", "Orphan")


def writes(what: str, value: object) -> tuple[Write, ...]:
    if not isinstance(value, tuple | list) or len(value) > _MOST:
        raise BadAnswer(f"{what} is {shown(value)}; a tuple of writes is expected")
    return tuple([_write(what, item) for item in value])


def _write(what: str, value: object) -> Write:
    cls: Any = type(value)
    if cls not in (Bind, Create, Delete, MergePatch, Update):
        raise BadAnswer(f"{what} has {shown(value)}; a Bind, Create, Delete, MergePatch or Update is expected")
    of = f"{what}: {cls.__name__}"
    fields: dict[str, Any] = {field.name: getattr(value, field.name) for field in attrs.fields(cls)}
    for name in _TEXTS.get(cls, ()):
        fields[name] = text(f"{of}.{name}", fields[name])
    for name in ("raw", "patch"):
        if name in fields:
            if not isinstance(fields[name], Mapping):
                raise BadAnswer(f"{of}.{name} is {shown(fields[name])}; a mapping is expected")
            fields[name] = _json(f"{of}.{name}", fields[name])
    for name, allowed in (("subresource", _SUBRESOURCES), ("propagation", _PROPAGATIONS)):
        if name in fields and not (isinstance(fields[name], str) and fields[name] in allowed):
            expected = ", ".join(repr(word) for word in allowed)
            raise BadAnswer(f"{of}.{name} is {shown(fields[name])}; one of {expected} is expected")
    if fields.get("grace_period_s") is not None:
        grace = fields["grace_period_s"]
        if type(grace) is not int or not 0 <= grace <= 10**9:
            raise BadAnswer(f"{of}.grace_period_s is {shown(grace)}; a whole number of seconds from 0 up is expected")
    made: Write = cls(**fields)
    return made


def plan(method: str, value: object, plugin: str, wrap: Callable[[Callable[..., Any]], Any]) -> Plan | Status | None:
    """Return a Plan, a Status or None. `wrap` converts the plan's `ready` to a guarded call."""
    if not isinstance(value, Plan):
        if value is not None and not isinstance(value, Status):
            _wrong(method, value, "a Plan, a Status or None")
        return status(method, value, plugin, Code.SKIP)
    ready = value.ready
    if ready is not None and not callable(ready):
        raise BadAnswer(f"{method} returned a Plan whose ready is {shown(ready)}; a function is expected")
    return Plan(
        writes(f"writes in the Plan that {method} returned", value.writes),
        None if ready is None else wrap(ready),
        number(f"timeout_s in the Plan that {method} returned", value.timeout_s),
        status(f"{method}'s Plan.timed_out", value.timed_out, plugin),
        status(f"{method}'s Plan.cancelled", value.cancelled, plugin),
    )


def unreserve(method: str, value: object) -> Plan | None:
    if value is None:
        return None
    if not isinstance(value, Plan):
        _wrong(method, value, "a Plan or None")
    return Plan(writes(f"writes in the Plan that {method} returned", value.writes))


def permit(method: str, value: object, plugin: str) -> tuple[Status | None, float]:
    expected = "None, a Status, or (Status, seconds)"
    if value is None or isinstance(value, Status):
        return status(method, value, plugin, Code.WAIT), 0.0
    if not isinstance(value, tuple | list) or len(value) != 2:
        _wrong(method, value, expected)
    reasons, wait = value
    if reasons is not None and not isinstance(reasons, Status):
        _wrong(method, value, expected)
    return status(method, reasons, plugin, Code.WAIT), number(f"the time that {method} returned", wait)


def idle_points(method: str, value: object) -> tuple[str, ...]:
    """Return the points at which a plugin has no work."""
    if not isinstance(value, tuple | list | set | frozenset):
        _wrong(method, value, f"a sequence or set of {', '.join(IDLE_POINTS)}")
    for point in value:
        if not isinstance(point, str) or point not in IDLE_POINTS:
            raise BadAnswer(f"{method} returned {shown(point)}; allowed are {', '.join(IDLE_POINTS)}")
    return tuple(value)


# -- registrations -------------------------------------------------------------------------------------------------


def registrations(
    method: str, value: object, wrap: Callable[[Callable[..., Any]], Any]
) -> tuple[ClusterEventWithHint, ...]:
    """Return a plugin's event registrations. `wrap` converts a hint to a guarded call."""
    try:
        entries = list(islice(iter(value), _MOST + 1))  # type: ignore[call-overload]  # a TypeError is handled below
    except TypeError:
        _wrong(method, value, "a sequence of ClusterEventWithHint")
    if len(entries) > _MOST:
        raise BadAnswer(f"{method} returned more than {_MOST} events")
    return tuple([_registration(method, entry, wrap) for entry in entries])


def _registration(method: str, entry: object, wrap: Callable[[Callable[..., Any]], Any]) -> ClusterEventWithHint:
    if not isinstance(entry, ClusterEventWithHint) or not isinstance(entry.event, ClusterEvent):
        raise BadAnswer(f"{method} returned {shown(entry)} among the events; a ClusterEventWithHint is expected")
    event, hint = entry.event, entry.hint
    if not isinstance(event.resource, EventResource | CustomResource):
        raise BadAnswer(
            f"{method} returned an event of {shown(event.resource)}; an EventResource or a CustomResource is expected"
        )
    if isinstance(event.action, bool) or not isinstance(event.action, int) or not 0 < event.action <= ActionType.ALL:
        raise BadAnswer(f"{method} returned an event with action {shown(event.action)}; an ActionType is expected")
    if hint is not None and not callable(hint):
        raise BadAnswer(f"{method} returned an event whose hint is {shown(hint)}; a function or None is expected")
    label = text(f"custom_label of an event that {method} returned", event.custom_label)
    return ClusterEventWithHint(
        ClusterEvent(event.resource, ActionType(int(event.action)), label),
        None if hint is None else wrap(hint),
        flag(f"by_signature of an event that {method} returned", entry.by_signature),
    )


def hint(method: str, value: object) -> QueueingHint:
    if not isinstance(value, QueueingHint):
        _wrong(method, value, "QUEUE or QUEUE_SKIP")
    return value
