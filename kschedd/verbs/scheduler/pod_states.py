"""States of a pod in assertions: their names, their evaluation, and the pod's message.

STATE: [not] on node NAME | on zone NAME | on KEY=VALUE (a label of its node) | pending | gated | scheduled | running |
succeeded | failed | terminating | gone | evicted | nominated to NODE; then [because TEXT], a part of the pod's
condition (for an evicted pod, of its condition or event).

An assertion about pods is checked against `PodsSeen`, which fetches the pods once. Raises UsageError.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.text.similar import did_you_mean
from kschedd.verbs.command_line.grammar import UsageError

Raw = Mapping[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
_EVICTIONS: Final = frozenset({"Preempted", "TaintManagerEviction", "Evicted", "Preempting", "DeletingOrphanPod"})


@attrs.frozen
class PodState:
    """A state of a pod; `holds` receives the pod (None: missing), its node (None: not scheduled) and its events."""

    words: str
    holds: Callable[[Raw | None, Raw | None, Sequence[Raw]], bool]
    label: str = ""  # node label to which the state refers
    because: str = ""

    def met(self, pod: Raw | None, node: Raw | None, events: Sequence[Raw]) -> bool:
        if not self.holds(pod, node, events):
            return False
        return not self.because or self.because in _reasons(self.words, pod, events)


def phase(pod: Raw | None) -> str:
    return "" if pod is None else str((pod.get("status") or {}).get("phase") or "Pending")


def node_name(pod: Raw | None) -> str:
    return "" if pod is None else str((pod.get("spec") or {}).get("nodeName") or "")


def _gated(pod: Raw | None) -> bool:
    return _scheduled_condition(pod).get("reason") == "SchedulingGated"


def _scheduled_condition(pod: Raw | None) -> Raw:
    return _condition(pod, "PodScheduled")


def _condition(pod: Raw | None, name: str) -> Raw:
    for condition in ((pod or {}).get("status") or {}).get("conditions") or ():
        if condition.get("type") == name:
            found: Raw = condition
            return found
    return {}


def _evicted(pod: Raw | None, node: Raw | None, events: Sequence[Raw]) -> bool:
    return _condition(pod, "DisruptionTarget").get("status") == "True" or any(
        event.get("reason") in _EVICTIONS for event in events
    )


def _reasons(state: str, pod: Raw | None, events: Sequence[Raw]) -> str:
    """Return the messages in the pod's status that explain its state."""
    if state.endswith("evicted"):
        condition = _condition(pod, "DisruptionTarget")
        messages = [condition.get("reason"), condition.get("message")]
        messages += [f"{e.get('reason')}: {e.get('message')}" for e in events if e.get("reason") in _EVICTIONS]
        return "; ".join(str(text) for text in messages if text)
    status = (pod or {}).get("status") or {}
    messages = [_scheduled_condition(pod).get("message") if not node_name(pod) else "", status.get("message")]
    return "; ".join(str(text) for text in messages if text)


STATES: Final[Mapping[str, Callable[[Raw | None, Raw | None, Sequence[Raw]], bool]]] = {
    "pending": lambda pod, node, events: phase(pod) == "Pending" and not node_name(pod),
    "gated": lambda pod, node, events: pod is not None and _gated(pod),
    "scheduled": lambda pod, node, events: bool(node_name(pod)),
    "running": lambda pod, node, events: phase(pod) == "Running",
    "succeeded": lambda pod, node, events: phase(pod) == "Succeeded",
    "failed": lambda pod, node, events: phase(pod) == "Failed",
    "terminating": lambda pod, node, events: (
        pod is not None and bool((pod.get("metadata") or {}).get("deletionTimestamp"))
    ),
    "gone": lambda pod, node, events: pod is None,
    "evicted": _evicted,
}


def state_of(words: Sequence[str]) -> PodState:
    """Parse all words as one state."""
    words, because = before(words, "because")
    if not words:
        raise UsageError(f"a state is required, one of {', '.join(STATES)}, on node NAME, on zone NAME")
    if words[0] == "not":
        other = state_of(words[1:])
        return attrs.evolve(
            other,
            words=f"not {other.words}",
            holds=lambda pod, node, events: pod is not None and not other.holds(pod, node, events),
            because=because,
        )
    match list(words):
        case ["on", "node", name]:
            return PodState(f"on node {name}", lambda pod, node, events: node_name(pod) == name, because=because)
        case ["on", "zone", name]:
            return _on(f"on zone {name}", ZONE, name, because)
        case ["on", label] if "=" in label:
            key, _, value = label.partition("=")
            return _on(f"on {label}", key, value, because)
        case ["nominated", "to", name]:
            return PodState(f"nominated to {name}", lambda pod, node, events: _nominated(pod) == name, because=because)
        case [word] if word in STATES:
            return PodState(word, STATES[word], because=because)
    raise UsageError(f'a pod cannot be "{" ".join(words)}"{_hint(words[0], words[1:])}')


def _hint(first: str, rest: Sequence[str]) -> str:
    """Return what is expected in place of words that are not a state."""
    if first == "on":
        return ': after "on", node NAME, zone NAME or KEY=VALUE is expected'
    if first in STATES and rest:
        if rest[0] in ("after", "within"):
            return f': after "{rest[0]}", one duration is expected, such as 30s or 5m'
        return "; labels of pods are given with -l" if "=" in rest[0] else f'; only "{first}" is a state'
    forms = f": {', '.join(STATES)}, on node NAME, on zone NAME, on KEY=VALUE, nominated to NODE"
    return did_you_mean(first, (*STATES, "on", "nominated")) or forms


def _on(words: str, key: str, value: str, because: str) -> PodState:
    def holds(pod: Raw | None, node: Raw | None, events: Sequence[Raw]) -> bool:
        return node is not None and labels(node).get(key) == value

    return PodState(words, holds, key, because)


def _nominated(pod: Raw | None) -> str:
    return str(((pod or {}).get("status") or {}).get("nominatedNodeName") or "")


def labels(raw: Raw) -> Raw:
    return (raw.get("metadata") or {}).get("labels") or {}


def before(words: Sequence[str], last: str) -> tuple[Sequence[str], str]:
    """Return the words before `word`, and the text after it."""
    if last not in words:
        return words, ""
    at = list(words).index(last)
    if at == len(words) - 1:
        raise UsageError(f"{last} requires a part of the message")
    return words[:at], " ".join(words[at + 1 :])


@attrs.frozen
class PodsSeen:
    """All pods with their nodes and events, fetched once."""

    pods: Mapping[str, Raw]
    nodes: Mapping[str, Raw]
    about: Mapping[str, Sequence[Raw]]

    @classmethod
    def of(cls, pods: Sequence[Raw], nodes: Sequence[Raw], events: Sequence[Raw]) -> "PodsSeen":
        about: dict[str, list[Raw]] = {}
        for event in events:
            kind, _, name = str(event.get("object") or "").rpartition("/")
            if kind.rpartition("/")[2].lower() in ("pod", ""):
                about.setdefault(name, []).append(event)
        return cls(_by_name(pods), _by_name(nodes), about)

    def node(self, pod: Raw | None) -> Raw | None:
        return self.nodes.get(node_name(pod))

    def met(self, state: PodState, name: str) -> bool:
        pod = self.pods.get(name)
        return state.met(pod, self.node(pod), self.about.get(name, ()))

    def state(self, name: str, wanted: PodState) -> str:
        """Return the pod's state in the grammar of assertions, if possible in the form of the wanted state."""
        pod = self.pods.get(name)
        node = self.node(pod)
        if pod is None:
            return "evicted" if _evicted(None, None, self.about.get(name, ())) else "gone"
        if node_name(pod):
            label = labels(node).get(wanted.label) if node is not None and wanted.label else None
            if label is not None and wanted.label == ZONE:
                return f"on zone {label}"
            return f"on {wanted.label}={label}" if label is not None else f"on node {node_name(pod)}"
        if _gated(pod):
            return "gated"
        message = self.message(name, wanted)
        words = "pending" if phase(pod) == "Pending" else phase(pod).lower()
        return f"{words} because {quoted(message)}" if message else words

    def described(self, name: str) -> str:
        """Return a description of the pod's state or node for readers."""
        pod = self.pods.get(name)
        if pod is None:
            return f"there is no pod {name}{did_you_mean(name, self.pods)}"
        shown = "SchedulingGated" if _gated(pod) else phase(pod)
        node = self.node(pod)
        if not node_name(pod):
            nominated = _nominated(pod)
            return f"pod {name} is {shown}{f', nominated to {nominated}' if nominated else ''}"
        zone = labels(node).get(ZONE) if node is not None else None
        place = f"{node_name(pod)} (zone {zone})" if zone else node_name(pod)
        return f"pod {name} is {shown} on {place}"

    def message(self, name: str, wanted: PodState) -> str:
        return _reasons(wanted.words, self.pods.get(name), self.about.get(name, ()))


def _by_name(raws: Sequence[Raw]) -> dict[str, Raw]:
    return {raw["metadata"]["name"]: raw for raw in raws}


def quoted(text: str) -> str:
    """Return the text as one quoted word of a command line, without escapes."""
    return f'"{text}"' if "'" in text and not set(text) & set('"\\$`') else shlex.quote(text)
