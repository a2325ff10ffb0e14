"""Verbs for the cluster's time: time, advance."""

import argparse
import re
from collections import deque
from typing import Any

from kschedd.api.text.durations import DurationError, parse_span
from kschedd.api.text.times import seconds
from kschedd.printing.reports.debugging import stop_text, time_text
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import UsageError, VerbParser, output_flag, verb
from kschedd.verbs.command_line.session import VerbSession


def speed_of(text: str) -> float:
    """Parse a speed of time: `real`, `virtual` or `10x`. Raises UsageError."""
    named = {"real": 1.0, "virtual": 0.0}.get(text)
    if named is not None:
        return named
    number = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)x", text)
    if number is None or not float(number[1]):
        raise UsageError(f'unknown speed of time "{text}": expected real, virtual, or a factor such as 10x')
    return float(number[1])


def span_of(text: str) -> float:
    """Parse a duration that is not negative. Raises UsageError."""
    try:
        span = parse_span(text.removeprefix("+"))
    except DurationError as fault:
        raise UsageError(f"{fault.why}; expected a duration such as 30s, 5m, 1h30m or 2d") from fault
    if span < 0:
        raise UsageError(f'"{text}": time cannot go back')
    return span


def is_moment(text: str) -> bool:
    """Return whether the text is a time: `t=2025-01-01T00:10:00Z`, with or without `t=`.

    No duration and no condition has this form.
    """
    return bool(re.match(r"t=(?!=)|\d{4}-\d\d-\d\d[Tt]", text))


def moment_of(text: str) -> float:
    """Parse a text for which `is_moment` is true; return seconds since the epoch. Raises UsageError."""
    try:
        return seconds(text.removeprefix("t="))
    except ValueError as fault:
        raise UsageError(f"{text}: {fault}; expected a time such as t=2025-01-01T00:10:00Z") from fault


def _time_words(words: VerbParser) -> None:
    words.add_argument("speed", nargs="?", default="", metavar="real|Nx|virtual", help="set the speed of time")
    output_flag(words, FORMS)


@verb(
    "time",
    "Show or set the cluster's time and its speed.",
    _time_words,
    examples=("time", "time 10x", "time virtual"),
    completes="time",
)
def time(session: VerbSession, options: argparse.Namespace) -> int:
    if options.speed:
        answer = session.daemon.call("time.set_speed", speed=speed_of(options.speed))
    else:
        answer = session.daemon.call("time.get")
    if not write_answer(session, options.output, answer):
        session.write(time_text(answer) + "\n")
    return 0


def _advance_words(words: VerbParser) -> None:
    words.add_argument(
        "by", metavar="DURATION|t=TIME", help="a duration such as 5m, or a time such as t=2025-01-01T00:10:00Z"
    )


@verb(
    "advance",
    "Advance virtual time, and process everything that becomes due.",
    _advance_words,
    examples=("advance 5m", "advance t=2025-01-01T00:10:00Z"),
)
def advance(session: VerbSession, options: argparse.Namespace) -> int:
    by = options.by
    given: dict[str, Any] = {"until_s": moment_of(by)} if is_moment(by) else {"seconds": span_of(by)}
    with session.daemon.subscribe("time.advance", **given) as moves:
        latest = deque(moves, maxlen=1)
    if not latest:
        raise RpcError("cancelled", "the advance was interrupted")
    last = latest[0]
    session.write(time_text(last) + "\n")
    if last.get("moved") == "stopped":
        session.write(stop_text(session.daemon.call("debug.state")) + "\n")
    return 0
