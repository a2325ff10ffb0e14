"""CEL selectors that match no device: the word that may be wrong, and values of the devices."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import Final

import attrs

from kschedd.api.quantity import QuantityError, nanos
from kschedd.causes.near import likeness
from kschedd.devices.pools.inventory import Device, typed_value
from kschedd.devices.selection import SelectorFailure, selects

#: words of an expression that may be wrong: strings, numbers, attribute names
_WORDS: Final = re.compile(r'"([^"\\]*)"|\'([^\'\\]*)\'|(?<![\w."])(\d+)(?![\w."])|\]\s*\.\??([A-Za-z_]\w*)')
_NEAR: Final = 0.7
_MOST_KINDS: Final = 32  # largest number of kinds of devices for which a changed selector is evaluated
_MOST_TRIED: Final = 24  # words instead of one


@attrs.frozen
class Mended:
    """`text` is the selector with `was` replaced by `now`.

    `near` is true if `was` and `now` differ by little.
    """

    text: str
    was: str
    now: str
    near: bool


def mended(text: str, devices: Sequence[Device]) -> Mended | None:
    """Return the selector with one changed word so that it matches a device, or None."""
    kinds = _kinds(devices)
    found = [fix for match in _WORDS.finditer(text) for fix in _with_other_word(text, match, kinds)]
    # A known word that resembles the wrong one is preferred to any other value of the attribute.
    return max(found, key=lambda fix: (fix.near, likeness(fix.was, fix.now)), default=None)


def _with_other_word(text: str, match: "re.Match[str]", kinds: Sequence[Device]) -> Iterator[Mended]:
    group = match.lastindex or 0
    was = match[group]
    begin, end = match.span(group)
    words = _names(kinds) if group == 4 else _domains(kinds) if text[:begin].endswith(('["', "['")) else _values(kinds)
    if group == 3:
        words = {word for word in words if word.isdigit()}
    for now in sorted(words - {was}, key=lambda word: (_distance(was, word), word))[:_MOST_TRIED]:
        changed = f"{text[:begin]}{now}{text[end:]}"
        if any(_selects(changed, device) for device in kinds):
            yield Mended(changed, was, now, likeness(was, now) >= _NEAR)
            return


def _selects(text: str, device: Device) -> bool:
    try:
        return selects(text, device)
    except SelectorFailure:
        return False


def _distance(was: str, word: str) -> float:
    """Return the distance of two values, 0 if they are equal.

    Numbers are compared by their ratio, texts by their spelling.
    """
    try:
        one, other = nanos(was), nanos(word)
        if one > 0 and other > 0:
            return abs(log(one / other))
    except QuantityError:
        pass
    return 2 - likeness(was, word)


def _kinds(devices: Iterable[Device]) -> list[Device]:
    """One device of each kind."""
    found: dict[str, Device] = {}
    for device in devices:
        alike = {name: value for name, value in device.raw.items() if name != "name"}
        found.setdefault(f"{device.id.driver} {sorted(alike.items(), key=lambda pair: pair[0])!r}", device)
    return list(found.values())[:_MOST_KINDS]


def _names(devices: Iterable[Device]) -> set[str]:
    return {
        name.rpartition("/")[2]
        for device in devices
        for part in ("attributes", "capacity")
        for name in device.raw.get(part) or {}
    }


def _domains(devices: Iterable[Device]) -> set[str]:
    qualified = {
        name.partition("/")[0]
        for device in devices
        for part in ("attributes", "capacity")
        for name in device.raw.get(part) or {}
        if "/" in name
    }
    return {device.id.driver for device in devices} | qualified


def _values(devices: Iterable[Device]) -> set[str]:
    found = _domains(devices)
    for device in devices:
        for attribute in (device.raw.get("attributes") or {}).values():
            typed = typed_value(attribute)
            if typed is not None and typed[0] != "bool":
                found.add(str(typed[1]))
        for entry in (device.raw.get("capacity") or {}).values():
            found.add(str(entry.get("value", "0")))
    return found


def told_values(text: str, devices: Sequence[Device]) -> list[str]:
    """Return the devices' values of each attribute and capacity in the selector, such as `memory 40Gi`."""
    counts: dict[str, Counter[str]] = {}
    for device in devices:
        for name, attribute in (device.raw.get("attributes") or {}).items():
            typed = typed_value(attribute)
            counts.setdefault(name, Counter())[str(typed[1]) if typed is not None else "?"] += 1
        for name, entry in (device.raw.get("capacity") or {}).items():
            counts.setdefault(name, Counter())[str(entry.get("value", "0"))] += 1
    words = set(re.findall(r"\w+", text))
    named = {name: there for name, there in counts.items() if name.rpartition("/")[2] in words}
    return [
        f"{name} {' or '.join(value for value, _ in there.most_common(3))}"
        for name, there in sorted((named or counts).items())[:4]
    ]
