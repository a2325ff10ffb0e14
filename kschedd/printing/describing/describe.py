"""Output of `describe` for any kind (an indented tree, and the events), and functions that all descriptions share.

This module makes no requests: related data (events, claims, queue state, pods of a node) is passed as
`DescribeContext`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.printing.columns.ages import UNKNOWN, age, clock
from kschedd.printing.columns.by_kind import Raw, meta
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import NONE, Table, clean, render

_INDENT = "  "


@attrs.frozen
class DescribeContext:
    """Data that is printed together with an object. None means that the data was not requested or is not available."""

    now: float
    style: TerminalStyle
    events: Sequence[Raw] | None = None
    queue: Raw | None = None  # state of the pod in the queue
    waiting: Raw | None = None  # node and plugins, if the pod waits for Permit plugins
    claims: Mapping[str, Raw | None] = attrs.field(factory=dict)  # PersistentVolumeClaims by name
    resource_claims: Mapping[str, Raw | None] = attrs.field(factory=dict)  # ResourceClaims by name
    pods: Sequence[Raw] = ()  # the node's pods


def line(label: str, value: str, indent: str = "", width: int = 18) -> str:
    return f"{indent}{label + ': ':<{width}}{clean(value)}".rstrip() + "\n"


def several(label: str, values: Iterable[str], indent: str = "", width: int = 18) -> str:
    """Return a label with one value per line."""
    first, *rest = list(values) or [NONE]
    return line(label, first, indent, width) + "".join(f"{indent}{' ' * width}{clean(value)}\n" for value in rest)


def section(title: str, body: str) -> str:
    """Return a heading with `body` below it, or with `<none>` on the same line if the body is empty."""
    return f"{title}:\n{body}" if body else line(title, NONE)


def pairs(values: Mapping[str, Any] | None, join: str) -> list[str]:
    return [f"{key}{join}{value}" for key, value in sorted((values or {}).items())]


def heading(raw: Raw, related: DescribeContext) -> str:
    """Return the metadata lines that all objects have: name, namespace, labels, annotations, creation."""
    text = line("Name", str(meta(raw).get("name", "")))
    if meta(raw).get("namespace"):
        text += line("Namespace", meta(raw)["namespace"])
    text += several("Labels", pairs(meta(raw).get("labels"), "="))
    annotations = dict(meta(raw).get("annotations") or {})
    annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    text += several("Annotations", pairs(annotations, ": "))
    return text


def since(time: Any, related: DescribeContext) -> str:
    """Return a point in time with its age."""
    return UNKNOWN if not time else f"{clock(time)} ({age(time, related.now)} ago)"


def owner_text(raw: Raw) -> str:
    owner = next((o for o in meta(raw).get("ownerReferences") or () if o.get("controller")), None)
    return f"{owner.get('kind', '')}/{owner.get('name', '')}" if owner else ""


def conditions(raw: Raw) -> str:
    found = (raw.get("status") or {}).get("conditions") or ()
    rows = tuple(
        (
            str(c.get("type", "")),
            str(c.get("status", "")),
            str(c.get("reason") or ""),
            str(c.get("message") or ""),
        )
        for c in found
    )
    return render(Table(("TYPE", "STATUS", "REASON", "MESSAGE"), rows), TerminalStyle(), indent=_INDENT) if rows else ""


def events_text(events: Sequence[Raw] | None, related: DescribeContext) -> str:
    """Return the events of an object; the argument has the format of the daemon's `events.list`."""
    if events is None:
        return ""
    if not events:
        return line("Events", NONE)
    rows = []
    for event in events:
        seen = age(event.get("last_seen") or event.get("time"), related.now)
        count = event.get("count") or 1
        times = f"{seen} (x{count} over {age(event.get('time'), related.now)})" if count > 1 else seen
        row = (event.get("type"), event.get("reason"), times, event.get("from"), event.get("message"))
        rows.append(tuple(str(cell or "") for cell in row))
    table = Table(("TYPE", "REASON", "AGE", "FROM", "MESSAGE"), tuple(rows))
    return "Events:\n" + render(table, related.style, indent=_INDENT)


def describe_any(raw: Raw, related: DescribeContext) -> str:
    """Return the description of any kind: the metadata lines, all other fields as a tree, the events."""
    text = heading(raw, related)
    text += line("API Version", str(raw.get("apiVersion", "")))
    text += line("Kind", str(raw.get("kind", "")))
    text += line("Created", since(meta(raw).get("creationTimestamp"), related))
    if owner_text(raw):
        text += line("Controlled By", owner_text(raw))
    if meta(raw).get("deletionTimestamp"):
        text += line("Terminating", since(meta(raw)["deletionTimestamp"], related))
    for field, value in raw.items():
        if field in ("apiVersion", "kind", "metadata") or value in (None, {}, []):
            continue
        if field == "status" and isinstance(value, Mapping) and value.get("conditions"):
            text += tree("Status", {k: v for k, v in value.items() if k != "conditions"})
            text += section("Conditions", conditions(raw))
        else:
            text += tree(words(field), value)
    return text + events_text(related.events, related)


def words(field: str) -> str:
    """Convert a field name to a heading: `nodeSelector` becomes `Node Selector`."""
    spaced = "".join(
        f" {char}" if char.isupper() and place and not field[place - 1].isupper() else char
        for place, char in enumerate(field)
    )
    return spaced[:1].upper() + spaced[1:]


def tree(label: str, value: Any, indent: str = "") -> str:
    """Return a value as an indented tree.

    Keys that are data and not field names (labels, resources) are printed unchanged.
    """
    match value:
        case None:
            return ""
        case Mapping() if not value:
            return ""
        case Mapping():
            inner = "".join(
                tree(key if _is_data(label, key) else words(key), item, indent + _INDENT) for key, item in value.items()
            )
            return f"{indent}{label}:\n{inner}"
        case list() if not value:
            return ""
        case list() if all(not isinstance(item, Mapping | list) for item in value):
            return line(label, ", ".join(map(str, value)), indent, len(label) + 2)
        case list():
            return f"{indent}{label}:\n" + "".join(_item(item, indent) for item in value)
        case bool():
            return line(label, str(value).lower(), indent, len(label) + 2)
        case _:
            return line(label, str(value), indent, len(label) + 2)


def _item(item: Any, indent: str) -> str:
    """Return one element of a list of maps, with a marker on its first line."""
    if isinstance(item, list):
        return f"{indent}{_INDENT}- {clean(', '.join(map(str, item)))}\n"
    if not isinstance(item, Mapping):
        return f"{indent}{_INDENT}- {clean(str(item))}\n"
    body = "".join(tree(words(key), value, indent + 2 * _INDENT) for key, value in item.items())
    return indent + _INDENT + "- " + body.removeprefix(indent + 2 * _INDENT)


# field names in a selector; all other keys in a selector are labels
_OF_SELECTORS: Final = frozenset({"matchLabels", "matchExpressions", "matchFields", "nodeSelectorTerms"})


def _is_data(label: str, key: str) -> bool:
    if key in _OF_SELECTORS:
        return False
    return (
        not key[:1].islower()
        or any(char in key for char in "./-_")
        or label
        in (
            "Match Labels",
            "Labels",
            "Annotations",
            "Node Selector",
            "Selector",
            "Requests",
            "Limits",
            "Hard",
            "Used",
            "Capacity",
            "Allocatable",
            "Data",
            "Parameters",
        )
    )
