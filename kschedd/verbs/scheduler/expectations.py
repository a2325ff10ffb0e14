"""Assertions about a cluster: the grammar of the words after `expect`, and their evaluation.

    pod NAME STATE            pods STATE (-l SELECTOR: every one of them; at least one)
    N pods STATE              nothing STATE (the same as 0 pods)
    pending NAME              the same as: pod NAME pending; likewise for each state of one word
    max skew <= N [over KEY] [for SELECTOR]    also: ≤, at most; KEY: zone (the default), region, node or a label
    event REASON [for KIND/NAME] [because TEXT]          no event ...
    KIND/NAME {PATH} = VALUE

STATE is one of `pod_states`. Each of these assertions may be followed by [after DURATION | within DURATION].

Assertions are evaluated with `ClusterFacts`, which queries the daemon. If an assertion fails, the result contains the
actual state, the pod's message, and a true assertion. A scenario can be rewritten with the true assertion. Raises
UsageError.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, Protocol

import attrs

from kschedd.api.text.durations import DurationError, parse_duration
from kschedd.api.text.numbers import whole_number
from kschedd.api.text.similar import did_you_mean
from kschedd.verbs.command_line.grammar import UsageError
from kschedd.verbs.scheduler.pod_states import (
    STATES,
    ZONE,
    PodsSeen,
    PodState,
    Raw,
    before,
    labels,
    node_name,
    phase,
    quoted,
    state_of,
)

_KEYS: Final = {"zone": ZONE, "region": "topology.kubernetes.io/region", "node": "kubernetes.io/hostname"}
_SKEW: Final = re.compile(r"max skew (?:<=|≤|at most) ?(\d+)(?: over (\S+))?(?: for (.+))?")
_FIELD: Final = re.compile(r"(\S+/\S+) (\{.+\}) ?==? ?(.*)")
_NAMED: Final = 3


class ClusterFacts(Protocol):
    """The queries that an assertion sends to the cluster. `namespace` None: all."""

    def pods(self, selector: str | None = None) -> Sequence[Raw]: ...

    def nodes(self) -> Sequence[Raw]: ...

    def events(self) -> Sequence[Raw]: ...

    def value(self, kind: str, name: str, path: str) -> str | None:
        """Return the values of a field, joined by spaces; None if the object does not exist."""


@attrs.frozen
class Finding:
    """The result of an assertion; `why` is the reason in the pod's status.

    `instead` is a true assertion, or "".
    """

    met: bool
    found: str = ""
    why: str = ""
    instead: str = ""


class Assertion(Protocol):
    def check(self, facts: ClusterFacts, /) -> Finding: ...


@attrs.frozen
class Expectation:
    """An assertion with its time: after `after_s` seconds, or within `within_s` seconds."""

    assertion: Assertion
    after_s: float = 0.0
    within_s: float = 0.0
    time: str = ""  # as it was given: "after 10m"


# -- assertions ----------------------------------------------------------------------------------------------------


@attrs.frozen
class PodAssertion:
    name: str
    state: PodState

    def check(self, facts: ClusterFacts) -> Finding:
        seen = PodsSeen.of(facts.pods(), facts.nodes(), facts.events())
        if seen.met(self.state, self.name):
            return Finding(True)
        instead = f"pod {self.name} {seen.state(self.name, self.state)}"
        return Finding(False, seen.described(self.name), seen.message(self.name, self.state), instead)


@attrs.frozen
class PodsAssertion:
    """If `count` is None, all pods must be in the state, and there must be at least one."""

    count: int | None
    state: PodState
    selector: str | None

    def check(self, facts: ClusterFacts) -> Finding:
        seen = PodsSeen.of(facts.pods(self.selector), facts.nodes(), facts.events())
        so = [name for name in seen.pods if seen.met(self.state, name)]
        met = len(so) == (len(seen.pods) or 1) if self.count is None else len(so) == self.count
        if met:
            return Finding(True)
        odd = [name for name in seen.pods if (name in so) == (self.count is not None)]
        first = odd[0] if odd else ""
        found = f"{_number(len(so))} of {len(seen.pods)}" + (f": {_some(odd)}" if odd else "")
        if self.count is None:
            found = f"{found} {'is' if len(odd) == 1 else 'are'} not" if odd else "there is no such pod"
        because = f" because {quoted(self.state.because)}" if self.state.because else ""
        of = f" -l {quoted(self.selector)}" if self.selector else ""
        subject = "nothing" if not so else f"{len(so)} pod{'s' if len(so) > 1 else ''}"
        instead = f"{subject} {self.state.words}{because}{of}"
        why = seen.message(first, self.state) if first else ""
        return Finding(False, found, f"{first}: {why}" if why else "", instead)


@attrs.frozen
class SkewAssertion:
    """The difference between the largest and the smallest number of pods among the values of a node label."""

    most: int
    key: str
    selector: str | None

    def check(self, facts: ClusterFacts) -> Finding:
        label = _KEYS.get(self.key, self.key)
        value_of = {raw["metadata"]["name"]: str(labels(raw)[label]) for raw in facts.nodes() if label in labels(raw)}
        counts = dict.fromkeys(sorted(set(value_of.values())), 0)
        for pod in facts.pods(self.selector):
            value = value_of.get(node_name(pod))
            if value is not None and phase(pod) not in ("Succeeded", "Failed"):
                counts[value] += 1
        if not counts:
            return Finding(False, f"no node has the label {label}")
        skew = max(counts.values()) - min(counts.values())
        shown = ", ".join(f"{value}: {count}" for value, count in counts.items())
        of = f" for {quoted(self.selector)}" if self.selector else ""
        return Finding(skew <= self.most, f"{skew} ({shown})", "", f"max skew ≤ {skew} over {self.key}{of}")


@attrs.frozen
class EventAssertion:
    reason: str
    about: str  # "kind/name" in lower case; "": any object
    because: str
    wanted: bool

    def check(self, facts: ClusterFacts) -> Finding:
        mine = [event for event in facts.events() if self.about in ("", _about(event))]
        found = [e for e in mine if e.get("reason") == self.reason and self.because in str(e.get("message") or "")]
        if bool(found) == self.wanted:
            return Finding(True)
        words = f"event {self.reason}" + (f" for {self.about}" if self.about else "")
        words += f" because {quoted(self.because)}" if self.because else ""
        if found:
            return Finding(False, f"{_about(found[0])}: {found[0].get('message')}", "", words)
        reasons = list(dict.fromkeys(str(event.get("reason")) for event in mine))
        near = did_you_mean(self.reason, reasons)
        there = f"there are {', '.join(reasons)}" if reasons else "there is none at all"
        return Finding(False, f"no such event; {there}{near}", "", f"no {words}")


def _about(event: Raw) -> str:
    kind, _, name = str(event.get("object") or "").rpartition("/")
    return f"{kind.rpartition('/')[2].lower()}/{name}"


@attrs.frozen
class FieldAssertion:
    kind: str
    name: str
    path: str
    value: str

    def check(self, facts: ClusterFacts) -> Finding:
        found = facts.value(self.kind, self.name, self.path)
        if found is None:
            return Finding(False, f"there is no {self.kind} {self.name}")
        instead = f"{self.kind}/{self.name} {quoted(self.path)} = {quoted(found)}"
        return Finding(found == self.value, f"it is {found!r}", "", instead)


def _number(count: int) -> str:
    return str(count) if count else "none"


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


# -- grammar --------------------------------------------------------------------------------------------------------


def expectation(words: Sequence[str], selector: str | None = None) -> Expectation:
    """Parse the words after `expect`; `selector` is the value of -l. Raises UsageError."""
    time: dict[str, Any] = {}
    if len(words) > 2 and words[-2] in ("after", "within"):
        try:
            time = {f"{words[-2]}_s": parse_duration(words[-1]), "time": " ".join(words[-2:])}
        except DurationError as fault:
            raise UsageError(f'{words[-2]} "{words[-1]}": {fault}; expected a duration such as 30s or 5m') from fault
        words = words[:-2]
    return Expectation(_assertion(list(words), selector), **time)


def _assertion(words: list[str], selector: str | None) -> Assertion:
    line = " ".join(words)
    if (skew := _SKEW.fullmatch(line)) is not None:
        return SkewAssertion(int(skew[1]), skew[2] or "zone", skew[3] or selector)
    if (field := _FIELD.fullmatch(line)) is not None:
        kind, _, name = field[1].partition("/")
        return FieldAssertion(kind, name, field[2], field[3])
    match words:
        case ["no", "event", reason, *rest]:
            return _event(reason, rest, wanted=False)
        case ["event", reason, *rest]:
            return _event(reason, rest, wanted=True)
        case ["pod", name, *rest]:
            return PodAssertion(name.removeprefix("pod/"), state_of(rest))
        case ["pods" | "pod", *rest]:
            return PodsAssertion(None, state_of(rest), selector)
        case ["nothing", *rest]:
            return PodsAssertion(0, state_of(rest), selector)
        case [number, "pods" | "pod", *rest] if (count := whole_number(number)) is not None:
            return PodsAssertion(count, state_of(rest), selector)
        case ["no", "pods" | "pod", *rest]:
            return PodsAssertion(0, state_of(rest), selector)
        case [state, name, *rest] if state in STATES:
            return PodAssertion(name.removeprefix("pod/"), state_of([state, *rest]))
        case [first, *rest] if first.startswith(("pod/", "pods/", "po/")):
            return PodAssertion(first.partition("/")[2], state_of(rest))
        case ["max", "skew", *_]:
            raise UsageError("max skew <= N [over zone|node|KEY] [for SELECTOR] is expected")
        case []:
            raise UsageError(
                "an assertion is required, such as: expect pod web-0 on zone b; expect nothing pending after 10m"
            )
    known = ("pod", "pods", "nothing", "no", "max", "event", *STATES)
    starts = "; it must start with pod NAME, pods, N pods, nothing, max skew, event, no event or KIND/NAME {PATH}"
    raise UsageError(f'"{line}" is not an assertion{did_you_mean(words[0], known) or starts}')


def _event(reason: str, rest: Sequence[str], *, wanted: bool) -> EventAssertion:
    rest, because = before(rest, "because")
    match list(rest):
        case []:
            return EventAssertion(reason, "", because, wanted)
        case ["for", about] if "/" in about:
            return EventAssertion(reason, about.lower() if about.count("/") == 1 else about, because, wanted)
    raise UsageError("event REASON [for KIND/NAME] [because TEXT] is expected")
