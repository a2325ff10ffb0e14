"""wait: waits until objects meet a condition, have a field value, exist, or are deleted.

The objects are polled, so that a time limit works with every kind of connection and in virtual time. The command waits
for one object after the other; all objects share the time limit.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kschedd.api.schemas.kinds import Kind
from kschedd.api.text.durations import DurationError, parse_duration
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import UsageError, VerbParser, namespace_flags, namespace_of, verb
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import Target, targets_of, where, with_near_name

Raw = Mapping[str, Any]
Met = Callable[[Raw | None], bool]

POLL_INTERVAL_S: Final = 0.5
_WEEK_S: Final = 7 * 86400.0


@attrs.frozen
class _Awaited:
    """An object to wait for, with its UID at the start of the wait ("" if it did not exist)."""

    kind: Kind
    name: str
    namespace: str | None
    uid: str = ""


@attrs.define(eq=False)
class Patience:
    """The remaining time of a wait, in seconds of sleep."""

    session: VerbSession
    left_s: float

    def wait(self) -> bool:
        """Sleep until the next poll; return False if the time limit has passed."""
        if self.left_s <= 0:
            return False
        pause = min(POLL_INTERVAL_S, self.left_s)
        self.session.sleep(pause)
        self.left_s -= pause
        return True


def seconds_to_wait(text: str, *, zero: float = 0.0) -> float:
    """Return the value of --timeout. A negative value means a week; 0 means `zero`. Raises UsageError."""
    try:
        limit = parse_duration(text.removeprefix("="))
    except DurationError as fault:
        raise UsageError(f'--timeout "{text}": {fault}; expected a duration such as 30s or 5m') from fault
    return _WEEK_S if limit < 0 else limit or zero


def _words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="KIND [NAME...] | KIND/NAME")
    words.add_argument(
        "--for",
        dest="wanted",
        default="",
        metavar="WHAT",
        help="condition=NAME[=VALUE], jsonpath={PATH}[=VALUE], create or delete",
    )
    words.add_argument(
        "--timeout", default="30s", metavar="TIME", help="time limit, such as 30s; 0: check once; -1s: a week"
    )
    namespace_flags(words, everywhere=True)
    words.add_argument("-l", "--selector", metavar="LABELS", help="objects with these labels")
    words.add_argument("--field-selector", metavar="FIELDS", help="objects with these fields")
    words.add_argument("--all", action="store_true", help="all objects of the kind")


@verb(
    "wait",
    "Wait until objects meet a condition, exist or are deleted.",
    _words,
    examples=(
        "wait --for=condition=Ready pod/web-0 --timeout=60s",
        "wait --for=jsonpath='{.status.phase}'=Running pods -l app=web",
        "wait --for=delete pod/web-0",
    ),
    completes="kinds",
)
def wait(session: VerbSession, options: argparse.Namespace) -> int:
    met = condition_of(options.wanted)
    patience = Patience(session, seconds_to_wait(options.timeout))
    namespace = namespace_of(session, options)
    awaited: list[_Awaited] = []
    for target in targets_of(session, options.what):
        awaited += _found(session, target, options, namespace, may_lack=options.wanted.lower() in ("delete", "create"))
    if not awaited and options.wanted.lower() != "delete":
        session.error("no matching resources found")
        return 1
    failed = 0
    for one in awaited:
        if options.wanted.lower() == "delete" and not one.uid:
            continue  # it was gone before
        if wait_until(session, one.kind, one.name, one.namespace, met, patience, uid=one.uid):
            session.write(f"{one.kind.resource}/{one.name} condition met\n")
        else:
            session.error(timed_out(one.kind, one.name))
            failed += 1
    return 1 if failed else 0


def timed_out(kind: Kind, name: str) -> str:
    resources = f"{kind.plural}.{kind.group}" if kind.group and "." not in kind.plural else kind.plural
    return f"timed out waiting for the condition on {resources}/{name}"


def wait_until(
    session: VerbSession,
    kind: Kind,
    name: str,
    namespace: str | None,
    met: Met,
    patience: Patience,
    *,
    uid: str = "",
) -> bool:
    """Wait until `met` is true for the object (None: the object was deleted).

    Return False if the time limit was reached.

    With `uid`, an object with another UID is treated as deleted.
    """
    while True:
        present = find_object(session, kind, name, namespace)
        if present is not None and uid and present["metadata"].get("uid", uid) != uid:
            present = None
        if met(present):
            return True
        if not patience.wait():
            return False


def find_object(session: VerbSession, kind: Kind, name: str, namespace: str | None) -> Raw | None:
    """Return the object; None if it does not exist."""
    try:
        found: Raw = session.daemon.call("objects.get", kind=kind.name, name=name, **where(kind, namespace))["object"]
        return found
    except RpcError as error:
        if error.code == "not_found":
            return None
        raise


def _found(
    session: VerbSession, target: Target, options: argparse.Namespace, namespace: str | None, *, may_lack: bool
) -> list[_Awaited]:
    kind = target.kind
    if target.name:
        present = find_object(session, kind, target.name, namespace)
        if present is None and not may_lack:
            error = RpcError("not_found", f'{kind.plural} "{target.name}" not found')
            raise with_near_name(session, error, kind, target.name, namespace)
        return [_Awaited(kind, target.name, namespace, _uid(present))]
    if not (options.selector or options.field_selector or options.all):
        raise UsageError(f"{kind.plural}: names, -l LABELS or --all are required")
    items = session.daemon.call(
        "objects.list",
        kind=kind.name,
        label_selector=options.selector,
        field_selector=options.field_selector,
        **where(kind, namespace),
    )["items"]
    return [_Awaited(kind, raw["metadata"]["name"], raw["metadata"].get("namespace"), _uid(raw)) for raw in items]


def _uid(raw: Raw | None) -> str:
    return "" if raw is None else str(raw["metadata"].get("uid") or "present")


# -- conditions -----------------------------------------------------------------------------------------------------


def condition_of(wanted: str) -> Met:
    """Return the predicate that --for describes. Raises UsageError."""
    if wanted.lower() == "delete":
        return lambda raw: raw is None
    if wanted.lower() == "create":
        return lambda raw: raw is not None
    how, equals, rest = wanted.partition("=")
    if how == "condition" and rest:
        name, _, value = rest.partition("=")
        return lambda raw: raw is not None and _has_condition(raw, name, value or "True")
    if how == "jsonpath" and equals:
        return _field_condition(rest)
    raise UsageError(
        f'unrecognized condition: "{wanted}"; --for condition=NAME, jsonpath={{PATH}}=VALUE, create, delete'
    )


def _has_condition(raw: Raw, name: str, value: str) -> bool:
    status = raw.get("status") or {}
    generation = raw["metadata"].get("generation") or 0
    for condition in status.get("conditions") or ():
        if str(condition.get("type", "")).lower() == name.lower():
            observed = condition.get("observedGeneration", status.get("observedGeneration"))
            if observed is not None and observed < generation:
                return False
            return str(condition.get("status", "")).lower() == value.lower()
    return False


def _field_condition(text: str) -> Met:
    from kschedd.printing.templates.jsonpath import JsonPathError, compile_path, values_at

    # The path may contain a filter with "=", so the value begins after the last brace.
    path, brace, rest = text.strip("'\"").rpartition("}")
    path = path + brace if brace else text
    value = rest.strip("'\"").removeprefix("=").strip("'\"") if brace else ""
    if brace and rest and not rest.strip("'\"").startswith("="):
        raise UsageError(f'jsonpath wait format is --for=jsonpath={{PATH}}=VALUE, not "{text}"')
    if brace and rest and not value:
        raise UsageError("jsonpath wait value cannot be empty")
    try:
        compiled = compile_path(path)
    except JsonPathError as fault:
        raise UsageError(str(fault)) from fault

    def met(raw: Raw | None) -> bool:
        values = [] if raw is None else values_at(compiled, raw)
        if not value:
            return bool(values)
        if len(values) > 1:
            raise UsageError("given jsonpath expression matches more than one value")
        if values and isinstance(values[0], Mapping | list):
            raise UsageError("jsonpath leads to a nested object or list, which is not supported")
        return bool(values) and _text(values[0]) == value

    return met


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
