"""One YAML or JSON document as plain values, with the line each of them stands on.

PyYAML's node tree knows the lines, so the document is composed first and the values are made from the nodes.
Differences from PyYAML's own loading: a key given twice is refused, times and sexagesimals stay text, only
`true` and `false` are booleans, and no tag makes anything but plain values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs
import yaml

from kschedd.config.faults import ConfigError, ConfigErrors

_DEEPEST = 200
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_HEX = re.compile(r"[-+]?0x[0-9a-fA-F]+")
_OCTAL = re.compile(r"[-+]?0o?[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@attrs.frozen
class Document:
    value: Any
    lines: Mapping[str, int]
    """Path of a value -> the line it (or its key) stands on."""


def child_path(path: str, key: str | int) -> str:
    """`$.profiles` and 0 make `$.profiles[0]`; keys that are no plain words are quoted."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f'{path}["{key}"]'


def read_document(text: str, source: str) -> Document:
    """The only document in `text`; raises `ConfigErrors` if there is none, are several, or it is no YAML."""
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=yaml.CSafeLoader) if not _is_nothing(node)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = "not valid YAML: " + (error.problem or "unreadable")
        raise _refused(source, mark.line + 1 if mark else 0, why) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise _refused(source, 0, f"not valid YAML: {error}") from error
    if not nodes:
        raise _refused(source, 0, "there is no configuration in it")
    if len(nodes) > 1:
        raise _refused(source, nodes[1].start_mark.line + 1, "more than one document, where one is expected")
    made = _Construction(source)
    value = made.value(nodes[0], "$", 0)
    if made.faults:
        raise ConfigErrors(tuple(made.faults))
    return Document(value, made.lines)


def _refused(source: str, line: int, why: str) -> ConfigErrors:
    return ConfigErrors((ConfigError(source, line, "$", None, why),))


def _is_nothing(node: yaml.Node | None) -> bool:
    return node is None or (isinstance(node, yaml.ScalarNode) and _scalar(node) is None)


@attrs.define
class _Construction:
    source: str
    lines: dict[str, int] = attrs.field(factory=dict)
    faults: list[ConfigError] = attrs.field(factory=list)
    _made: int = 0

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        self._made += 1
        if depth > _DEEPEST or self._made > 100_000:  # An alias that holds itself, or a bomb made of aliases.
            self._fault(line, path, None, "too deep or too large")
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, child_path(path, at), depth + 1) for at, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode), f"a YAML node is one of three kinds, got {type(node)}"
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._fault(line, path, None, "a key that is not text")
                continue
            key = key_node.value
            below = child_path(path, key)
            if key in made:
                first = self.lines[below]
                self._fault(line, below, None, f"given twice, first on line {first}")
                continue
            self.lines[below] = line
            made[key] = self.value(value_node, below, depth + 1)
        return made

    def _fault(self, line: int, path: str, value: Any, why: str) -> None:
        if len(self.faults) < 100:
            self.faults.append(ConfigError(self.source, line, path, value, why))


def _scalar(node: yaml.ScalarNode) -> Any:
    """A scalar as its kind: quoted ones are text whatever they look like."""
    text: str = node.value
    if node.style or node.tag == "tag:yaml.org,2002:str":
        return text
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text[0] in "tT"
    if len(text) < 64:
        if _INT.fullmatch(text):
            return int(text)
        if _HEX.fullmatch(text):
            return int(text, 16)
        if _OCTAL.fullmatch(text):
            return int(text.replace("o", ""), 8)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text
