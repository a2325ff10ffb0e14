"""Documents: YAML and JSON text, parsed document by document, with the line of each value.

Plain YAML scalars are resolved as in kubectl (kubernetes-sigs/yaml, goyaml.v2/resolve.go): `on`, `yes` and `y` are
booleans, 0644 is octal, 1_000 is a number, 12:30:45 and timestamps stay text, keys are text. A whole number is an int,
as after a conversion to JSON. A stream is split at `---` before parsing, so that one malformed document does not affect
other documents. Deep nesting, excessive alias expansion, duplicate keys in one mapping, NaN and infinity are rejected.
No text causes an exception: a `Document` has either a value or faults. Owns nothing.
"""

import json
import math
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import attrs
import yaml

from kschedd.api.text.json_text import DEEPEST, too_deep, without_lone_surrogates
from kschedd.api.text.portions import SEPARATOR

MOST_ALIASED: Final = 100_000
"""Maximum number of values that all aliases of one document may expand to; each 64 characters of text count as one."""
_TEXT: Final = 6  # 2 ** 6 characters of text are counted as one additional value

MOST_FAULTS: Final = 1_000
"""Limit of reported faults per text; reading stops after that."""

_FREED: Final = 500  # nodes
_LONGEST_WITH_LINES: Final = 8 << 20  # maximum number of characters; finding lines takes almost 1 s, and 30 MB per MB
_TOO_DEEP: Final = f"nested more than {DEEPEST} levels deep"

Path = tuple[str | int, ...]

# `\s` would scan the same blank lines again from each line.
_CONTENT: Final = re.compile(r"^(?![^\S\n]*(#|%|$)).", re.MULTILINE)
_TRUE: Final = frozenset("y Y yes Yes YES true True TRUE on On ON".split())
_FALSE: Final = frozenset("n N no No NO false False FALSE off Off OFF".split())
_NULL: Final = frozenset(("", "~", "null", "Null", "NULL"))
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(_NULL, None),
}
_INTEGER: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMERIC: Final = frozenset("+-.0123456789")
_TAG: Final = "tag:yaml.org,2002:"
_SPACE: Final = re.compile(r"\s*")
_LINE_OF_VALUE: Final = re.compile(r"^[{\[]", re.MULTILINE)
_STRUCTURE: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"|[\[\]{}]')
_PLAIN_TAGS: Final = frozenset(_TAG + name for name in ("bool", "int", "float", "null", "timestamp"))


@attrs.frozen
class DocumentFault:
    """An error in a document, with its position. `line` is the 1-based line in the whole text."""

    line: int
    path: Path
    value: object
    why: str


@attrs.frozen
class RepeatedKey:
    """A key that occurs again in a mapping. `line` is the 1-based line in the whole text."""

    line: int
    path: Path
    in_what: str  # "mapping" in YAML, "object" in JSON

    def as_fault(self) -> DocumentFault:
        path = self.path if self.in_what == "mapping" else ()
        return DocumentFault(
            self.line, path, None, f'the key "{str(self.path[-1])[:63]}" occurs twice in {_ONE[self.in_what]}'
        )


_ONE: Final = {"mapping": "one mapping", "object": "one object"}


@attrs.define(eq=False, slots=False)
class Document:
    """One document of a text: its value, or the faults that prevent parsing.

    `repeated` contains the repeated keys, of which the last value is used.
    """

    text: str
    first_line: int  # first line of this document in the whole text, 1-based
    value: Any = None
    faults: tuple[DocumentFault, ...] = ()
    repeated: tuple[RepeatedKey, ...] = ()

    def line_of(self, path: Path) -> int:
        """Return the line of the value at `path`, or of its nearest existing ancestor.

        For a very long document, return its first line.
        """
        node = self._root
        if node is None:
            return self.first_line
        line = node.start_mark.line
        for step in path:
            found = None
            if isinstance(node, yaml.MappingNode):
                found = self._entries_of(node).get(step)
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                found = (node.value[step], node.value[step])
            if found is None:
                break
            line, node = found[0].start_mark.line, found[1]
        return self.first_line + int(line)

    def scalar_at(self, path: Path) -> tuple[int, int, int, str] | None:
        """Return the position of a scalar on one line: line and columns in the document's text, and its quote.

        Returns None if there is no such scalar.
        """
        node = self._root
        for step in path:
            if isinstance(node, yaml.MappingNode):
                node = self._entries_of(node).get(step, (None, None))[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
            else:
                return None
        if not isinstance(node, yaml.ScalarNode) or node.start_mark.line != node.end_mark.line:
            return None
        quote = node.style if node.style in ("'", '"') else ""
        return node.start_mark.line, node.start_mark.column, node.end_mark.column, quote

    def _entries_of(self, mapping: yaml.MappingNode) -> dict[str | int, tuple[yaml.Node, yaml.Node]]:
        """Return the entries of a mapping by key.

        The result is cached, because a mapping may have many faults.
        """
        found = self._entries.get(id(mapping))
        if found is None:
            found = {}
            for key, value in mapping.value:
                if isinstance(key, yaml.ScalarNode):
                    found.setdefault(key.value, (key, value))
            self._entries[id(mapping)] = found
        return found

    def forget_lines(self) -> None:
        """Free the nodes that were parsed to find lines, in portions, because freeing a large tree blocks all threads.

        A later request for a line parses the nodes again.
        """
        self.__dict__.pop("_entries", None)
        within = [self.__dict__.pop("_root", None)]
        while within:
            node = within.pop()
            if not isinstance(node, yaml.CollectionNode):
                continue
            children = node.value
            while children:
                part = children[-_FREED:]
                del children[-_FREED:]
                for child in part:
                    within.extend(child if isinstance(child, tuple) else (child,))

    @cached_property
    def _entries(self) -> dict[int, dict[str | int, tuple[yaml.Node, yaml.Node]]]:
        return {}

    @cached_property
    def _root(self) -> yaml.Node | None:
        if len(self.text) > _LONGEST_WITH_LINES or "\n" not in self.text.rstrip():
            return None
        try:
            # if the document has no faults, its depth was already checked
            return composed(self.text) if self.faults else yaml.compose(self.text, yaml.CSafeLoader)
        except yaml.YAMLError:
            return None  # the text is valid JSON but not YAML; the caller then uses the first line


def composed(text: str) -> yaml.Node | None:
    """Return the nodes of a document; None if it is nested too deeply. Raises YAMLError.

    The composer recurses in C without a limit, so that deep nesting overflows the stack. The parser's events need no
    recursion, so they are checked first.
    """
    depth = 0
    try:
        for event in yaml.parse(text, yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST:
                    return None
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.scanner.ScannerError as error:
        if _nested_too_deeply(error):
            return None
        raise
    root: yaml.Node | None = yaml.compose(text, yaml.CSafeLoader)
    return root


def _nested_too_deeply(error: yaml.YAMLError) -> bool:
    """Return whether libyaml stopped because the text is nested too deeply.

    Since 0.2.6, libyaml's scanner stops at 1,000 levels.
    """
    return isinstance(error, yaml.scanner.ScannerError) and error.problem == "exceeded maximum nesting depth"


class _Faulty(Exception):
    def __init__(self, line: int, path: Path, value: object, why: str) -> None:
        self.fault = (line, path, value, why)


def read_documents(text: str, *, last_wins: bool = False) -> Iterator[Document]:
    """Yield the documents of `text` that are not empty. After `MOST_FAULTS` faults, reading stops with a final fault.

    A repeated key is a fault. With `last_wins`, the last value is used instead, and the key is added to
    `Document.repeated`.
    """
    faults = 0
    for document in _read_all(text):
        if document.repeated and not last_wins:
            document.value, document.faults = None, tuple(each.as_fault() for each in document.repeated)
        yield document
        faults += len(document.faults)
        if faults >= MOST_FAULTS:
            line = document.first_line + document.text.count("\n")
            why = f"too many errors ({MOST_FAULTS}); the rest was not read"
            yield Document("", line, faults=(DocumentFault(line, (), None, why),))
            return


def _read_all(text: str) -> Iterator[Document]:
    start = 0
    line = 1
    cuts = [*(match.span() for match in SEPARATOR.finditer(text)), (len(text), len(text))]
    for cut, after in cuts:
        chunk = text[start:cut]
        if _CONTENT.search(chunk):
            if chunk.lstrip()[:1] in ("{", "["):
                yield from _read_json(chunk, line)
            else:
                yield from _read_yaml(chunk, line)
        line += text.count("\n", start, after)
        start = after


def _read_yaml(text: str, first_line: int) -> Iterator[Document]:
    try:
        loader = yaml.CSafeLoader(text)
    except yaml.YAMLError as error:
        yield Document(text, first_line, faults=(_yaml_fault(error, first_line),))
        return
    try:
        loader.get_event()  # stream start
        while not isinstance(loader.get_event(), yaml.StreamEndEvent):
            builder = _Builder(loader)
            value = builder.build()
            loader.get_event()  # document end
            repeated = tuple(RepeatedKey(first_line + line, path, "mapping") for line, path in builder.repeated)
            if repeated or value is not None:
                yield Document(text, first_line, value, repeated=repeated)
    except yaml.YAMLError as error:
        yield Document(text, first_line, faults=(_yaml_fault(error, first_line),))
    except _Faulty as stop:
        line, path, shown, why = stop.fault
        yield Document(text, first_line, faults=(DocumentFault(first_line + line, path, shown, why),))
    finally:
        loader.dispose()


def _yaml_fault(error: yaml.YAMLError, first_line: int) -> DocumentFault:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark else 0)
        if _nested_too_deeply(error):
            return DocumentFault(line, (), None, _TOO_DEEP)
        why = ", ".join(filter(None, (error.problem, error.context))) or "not YAML"
        return DocumentFault(line, (), None, f"not YAML: {why}")
    if isinstance(error, yaml.reader.ReaderError):
        return DocumentFault(first_line, (), None, f"not YAML: {error.reason} ({error.character!r})")
    return DocumentFault(first_line, (), None, "not YAML")


_ABSENT: Final = object()


class _Builder:
    """A builder of one document from the parser's events, without recursion."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._aliased = 0
        self.repeated: list[tuple[int, Path]] = []

    def build(self) -> Any:
        # A frame is [container, key or _ABSENT, anchor, size, previous keys or None]; its size is a number of values.
        get_event = self._loader.get_event
        frames: list[list[Any]] = []
        while True:
            event = get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                value = self._scalar(event, frames)
                anchor, size = event.anchor, 1 + (len(event.value) >> _TEXT)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if len(frames) >= DEEPEST:
                    raise _Faulty(event.start_mark.line, (), None, _TOO_DEEP)
                if event.tag is not None and event.tag not in (f"{_TAG}map", f"{_TAG}seq"):
                    raise _Faulty(event.start_mark.line, _path(frames), event.tag, "unsupported tag")
                mapping = kind is yaml.MappingStartEvent
                frames.append([{} if mapping else [], _ABSENT, event.anchor, 1, set() if mapping else None])
                continue
            elif kind is yaml.AliasEvent:
                value, size = self._alias(event, frames)
                anchor = None
            else:  # end of a mapping or sequence
                value, _, anchor, size, _ = frames.pop()
            if anchor is not None:
                self._anchors[anchor] = (value, size)
            if not frames:
                return value
            frame = frames[-1]
            frame[3] += size
            if frame[4] is None:
                frame[0].append(value)
            elif frame[1] is _ABSENT:
                frame[1] = self._key(value, event, frames)
            else:
                self._store(frame, value, event, frames)

    def _key(self, value: Any, event: Any, frames: list[list[Any]]) -> str:
        if type(value) is str:
            if value == "<<" and type(event) is yaml.ScalarEvent and event.implicit[0]:
                return _MERGE
            key = value
        elif type(value) is bool:
            key = "true" if value else "false"
        elif type(value) in (int, float):
            key = str(value)
        else:
            raise _Faulty(event.start_mark.line, _path(frames), None, "a key must be a string")
        frame = frames[-1]
        if key in frame[4] and len(self.repeated) < MOST_FAULTS:
            self.repeated.append((event.start_mark.line, (*_path(frames[:-1]), key)))
        frame[4].add(key)
        return key

    def _store(self, frame: list[Any], value: Any, event: Any, frames: list[list[Any]]) -> None:
        container, key = frame[0], frame[1]
        frame[1] = _ABSENT
        if key is not _MERGE:
            container[key] = value
            return
        for merged in value if type(value) is list else [value]:
            if type(merged) is not dict:
                raise _Faulty(event.start_mark.line, _path(frames), None, "<< requires a mapping or a list of mappings")
            for name, item in merged.items():
                container.setdefault(name, item)

    def _alias(self, event: Any, frames: list[list[Any]]) -> tuple[Any, int]:
        found = self._anchors.get(event.anchor)
        if found is None:
            inside = any(frame[2] == event.anchor for frame in frames)
            why = "the anchor contains itself" if inside else "undefined anchor"
            raise _Faulty(event.start_mark.line, _path(frames), f"*{event.anchor}", why)
        self._aliased += found[1]
        if self._aliased > MOST_ALIASED:
            why = f"the aliases of this document expand to more than {MOST_ALIASED} values"
            raise _Faulty(event.start_mark.line, _path(frames), f"*{event.anchor}", why)
        return found

    def _scalar(self, event: Any, frames: list[list[Any]]) -> Any:
        text: str = event.value
        tag = event.tag
        if tag is None:
            if not event.implicit[0]:
                return text
            tag = ""
        elif tag == f"{_TAG}str" or tag == "!":
            return text
        elif tag not in _PLAIN_TAGS:
            raise _Faulty(event.start_mark.line, _path(frames), tag, "unsupported tag")
        try:
            return plain_scalar(text)
        except ValueError as wrong:
            raise _Faulty(event.start_mark.line, _path(frames), text, str(wrong)) from None


_MERGE: Final = "<<merge>>"


def _path(frames: list[list[Any]]) -> Path:
    """Return the builder's current path: the open keys and indices."""
    steps: list[str | int] = []
    for frame in frames:
        if frame[4] is None:
            steps.append(len(frame[0]))
        elif frame[1] is not _ABSENT:
            steps.append(frame[1])
    return tuple(steps)


def plain_scalar(text: str) -> str | int | float | bool | None:
    """Resolve an unquoted YAML scalar in the same way as kubectl.

    Raises ValueError for values that JSON cannot represent.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC or len(text) > 400:
        return text
    if _NOT_FINITE.fullmatch(text):
        raise ValueError("numbers must be finite")
    plain = text.replace("_", "") if "_" in text else text
    if match := _INTEGER.fullmatch(plain):
        sign, hexadecimal, binary, octal, decimal = match.groups()
        number = (
            int(decimal)
            if decimal
            else int(hexadecimal, 16)
            if hexadecimal
            else int(binary, 2)
            if binary
            else int(octal, 8)
        )
        return _as_json(-number if sign == "-" else number)
    if _FLOAT.fullmatch(plain):
        return _as_json(float(plain))
    return text


def _as_json(number: int | float) -> int | float:
    """Return the number as after conversion to JSON: 2.0 becomes 2, and an integer beyond 64 bits becomes a float."""
    if isinstance(number, float):
        if not math.isfinite(number):
            raise ValueError("numbers must be finite")
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    return number if -(2**63) <= number < 2**64 else float(number)


def _read_json(text: str, first_line: int) -> Iterator[Document]:
    """Read a stream of JSON values. A text that is not JSON may still be YAML in flow style.

    After an invalid value, reading continues at the next line that begins a value. Reading never continues before the
    end of the invalid value, so the total time is proportional to the length of the text.
    """
    text = without_lone_surrogates(text)
    position = counted = _past_space(text, 0)
    line = first_line + text.count("\n", 0, position)
    first = True
    while position < len(text):
        line += text.count("\n", counted, position)
        counted = position
        twice: dict[str, None] = {}
        try:
            value, end = _decoder(twice).raw_decode(text, position)
            if too_deep(value):
                raise RecursionError
        except (ValueError, RecursionError) as error:
            if first:
                documents = list(_read_yaml(text, first_line))
                if documents and not any(document.faults for document in documents):
                    yield from documents
                    return
            if isinstance(error, json.JSONDecodeError):
                what = error.msg.removesuffix(" at")  # some messages of the decoder end with "at"
                at, why = line + text.count("\n", position, error.pos), f"not JSON: {what} at column {error.colno}"
                read_to = max(position + 1, error.pos)
            else:
                deepest, read_to = _extent(text, position)
                at, why = line, f"not JSON: {error}"
                if isinstance(error, RecursionError):
                    at += text.count("\n", position, deepest)
                    why = _TOO_DEEP
            resume = _LINE_OF_VALUE.search(text, read_to)
            end = resume.start() if resume else len(text)
            yield Document(text[position:end], line, faults=(DocumentFault(at, (), None, why),))
            position, first = end, False
            continue
        first = False
        document = Document(text[position:end], line, value)
        if twice:
            lines = _second_lines(document)
            document.repeated = tuple(
                RepeatedKey(lines.get(key, line), (key,), "object") for key in list(twice)[:MOST_FAULTS]
            )
        yield document
        position = _past_space(text, end)


def _past_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _extent(text: str, position: int) -> tuple[int, int]:
    """Return the position at which a JSON value exceeds the nesting limit (or its start), and its end."""
    depth = 0
    deepest = -1
    for match in _STRUCTURE.finditer(text, position):
        token = text[match.start()]
        if token in "[{":
            depth += 1
            if depth > DEEPEST and deepest < 0:
                deepest = match.start()
        elif token in "]}":
            depth -= 1
            if depth <= 0:
                return max(deepest, position), match.end()
    return max(deepest, position), len(text)


def _decoder(twice: dict[str, None]) -> json.JSONDecoder:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(items)
        if len(mapping) != len(items):
            seen: set[str] = set()
            for key, _ in items:
                if key in seen:
                    twice[key] = None
                seen.add(key)
        return mapping

    def refuse(word: str) -> Any:
        raise ValueError(f"{word}: numbers must be finite")

    def number(text: str) -> int | float:
        return _as_json(int(text) if len(text) < 400 else float(text))

    return json.JSONDecoder(
        object_pairs_hook=pairs,
        parse_constant=refuse,
        parse_float=lambda t: _as_json(float(t)),
        parse_int=number,
    )


def _second_lines(document: Document) -> dict[str, int]:
    """Return the lines on which keys occur again in the same mapping."""
    lines: dict[str, int] = {}
    waiting = [document._root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for name, value in node.value:
                if name.value in seen:
                    lines.setdefault(name.value, document.first_line + int(name.start_mark.line))
                seen.add(name.value)
                waiting.append(value)
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
    return lines
