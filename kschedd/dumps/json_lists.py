"""A JSON list of objects that is split into its items without decoding the list as a whole.

A program that writes a list puts the same characters between any two items. The text is therefore split at these
characters, and a split is correct if the text before it is valid JSON. A thread that reads a large list therefore
releases the interpreter lock between two items.
"""

import json
import re
from collections.abc import Hashable
from typing import Any, Final

import attrs
import msgspec

from kschedd.api.text.json_text import without_lone_surrogates
from kschedd.dumps.object_texts import ObjectTexts

Data = bytes | bytearray

_FIRST_ITEM: Final = re.compile(rb'"items"\s*:\s*\[\s*')
_GAP: Final = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
_START: Final = re.compile(rb'\{[ \t\r\n]*"[^"\\]{1,100}"')
_END: Final = re.compile(rb"[ \t\r\n]*\]")
_POD_LIST: Final = re.compile(rb'"kind"\s*:\s*"PodList"')
_DECODER: Final = json.JSONDecoder()
_LONGEST_HEAD: Final = 1 << 16  # maximum number of bytes of a list before its first item
_UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)
_TRIES: Final = 8  # maximum number of attempts to split the text within one item
_WINDOW: Final = 1 << 16


@attrs.frozen(eq=False)
class ListItem:
    """An item of a list.

    Items with equal `likeness` differ only in strings that no validation distinguishes. None: it is not known.
    """

    raw: Any
    likeness: Hashable = None


@attrs.frozen(eq=False)
class JsonList:
    """The items of a list. `around`: the list without its items; None if the text ends after the items."""

    items: list[ListItem]
    around: dict[str, Any] | None


def read_list(data: Data) -> JsonList | None:
    """Return the list; None if the text is not a list, or must be decoded as a whole."""
    start = _FIRST_ITEM.search(data, 0, _LONGEST_HEAD)
    if start is None:
        return None
    of_pods = _POD_LIST.search(data, 0, start.start()) is not None
    items, position = _items(data, start.end(), ObjectTexts(of_pods))
    end = _END.match(data, position)
    if end is None:
        return JsonList(items, None)
    try:
        around = json.loads(bytes(data[: start.start()]) + b'"items": []' + data[end.end() :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(around, dict) or not str(around.get("kind")).endswith("List"):
        return None
    return JsonList(items, around)


def _items(data: Data, position: int, texts: ObjectTexts) -> tuple[list[ListItem], int]:
    """Return the complete items from a position on, and the position where they end."""
    items: list[ListItem] = []
    separator = b""
    while True:
        found = separator and _cut_item(data, position, separator, texts)
        found = found or _whole_item(data, position, texts)
        if not found:
            return items, position
        item, position = found
        items.append(item)
        gap = _GAP.match(data, position)
        if gap is None:
            return items, position
        position = gap.end()
        if not separator and (start := _START.match(data, position)):
            separator = b"}%b%b" % (gap[0], start[0])


def _cut_item(data: Data, position: int, separator: bytes, texts: ObjectTexts) -> tuple[ListItem, int] | None:
    """Return the item that ends at the next separator outside the item, and the position of its end."""
    view, end = memoryview(data), position
    for _ in range(_TRIES):
        end = data.find(separator, end) + 1
        if not end:
            return None
        try:
            return _item(view[position:end], texts), end
        except _UNREADABLE:
            continue
    return None


def _whole_item(data: Data, position: int, texts: ObjectTexts) -> tuple[ListItem, int] | None:
    """Decode the item at this position; return it with the position of its end; None if the item is incomplete."""
    window = _WINDOW
    while True:
        # the last character may be incomplete
        text = data[position : position + window].decode(errors="surrogateescape")
        try:
            _, length = _DECODER.raw_decode(text)
            end = position + len(text[:length].encode(errors="surrogateescape"))
        except RecursionError:
            return None
        except ValueError:
            if position + window >= len(data):
                return None
            window *= 8
            continue
        try:
            return _item(memoryview(data)[position:end], texts), end
        except _UNREADABLE:  # such as a number, or half of a surrogate pair, which only the lenient decoder accepts
            return _odd_item(data[position:end]), end


def _item(text: memoryview, texts: ObjectTexts) -> ListItem:
    """Decode an item. Raises one of `_UNREADABLE`."""
    return ListItem(*texts.read(text))


def _odd_item(text: Data) -> ListItem:
    """Decode an item with the slower decoder, which is more lenient. Raises UnicodeDecodeError."""
    return ListItem(_DECODER.decode(without_lone_surrogates(text.decode())))
