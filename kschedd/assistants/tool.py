"""The definition of a tool, and the division of its result into pages that a model can read.

A result is a string. Some lines are shown on every page; each call shows one page of the other lines. A page ends with
the `cursor` of the next page. `data` contains the values that a program needs for its next step: commands, positions,
numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.answers import json_schema, plain
from kschedd.assistants.results import NO_DATA, NoData, PageData
from kschedd.errors import KscheddError
from kschedd.service.params import Param, bind

MAX_CHARS: Final = 8_000  # maximum number of characters per page: about 2,000 tokens
_LONGEST_LINE: Final = 2_000
_JSON_TYPES: Final = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "map": "object",
    "array": "array",
}

CURSOR: Final = Param(
    "cursor", "integer", False, 0, "the cursor of the next page, as stated at the end of a result", minimum=0
)


@attrs.define(eq=False)
class ToolError(KscheddError):
    """The error for a call that a tool rejects; it names the fault and the allowed values."""

    why: str


@attrs.frozen
class Answer:
    """The result of a tool. `rows` is the name of the lines, such as "pods"; "" for plain text."""

    head: str = ""  # header lines with their line ends, shown on every page
    lines: Sequence[str] = ()
    rows: str = ""
    data: attrs.AttrsInstance = NO_DATA

    @classmethod
    def of_text(cls, text: str, data: attrs.AttrsInstance = NO_DATA) -> "Answer":
        return cls(lines=text.splitlines(), data=data)


Run = Callable[[dict[str, Any]], Answer]


@attrs.frozen
class Tool:
    """A tool. `run` is called with a value for each parameter. `limit` is the default number of lines per page.

    `data` is the class of the data in the results.
    """

    name: str
    doc: str
    params: tuple[Param, ...]
    run: Run
    writes: bool = False
    limit: int = 0  # 0: as many as fit
    data: type[attrs.AttrsInstance] = NoData

    @property
    def declared(self) -> tuple[Param, ...]:
        if not self.limit:
            return (*self.params, CURSOR)
        limit = Param("limit", "integer", False, self.limit, "number of lines per page", minimum=1, maximum=1000)
        return (*self.params, limit, CURSOR)

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {param.name: _schema_of(param) for param in self.declared},
            "required": [param.name for param in self.declared if param.required],
            "additionalProperties": False,
        }

    @property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of the data, including the position of the page."""
        own, page = json_schema(self.data), json_schema(PageData)
        return {**own, "properties": own["properties"] | page["properties"]}

    def call(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the text and the data of a page. Raises BadParamsError, and the exceptions of the tool."""
        given = bind(self.name, self.declared, [dict(arguments)])
        answer = self.run(given)
        shown, after = _page(answer.lines, given["cursor"], given.get("limit") or len(answer.lines))
        total = len(answer.lines)
        text = answer.head + "".join(f"{line}\n" for line in shown)
        data: dict[str, Any] = plain(answer.data)
        if answer.rows:
            data |= {"total": total, "shown": len(shown)}
        if after < total:
            first = given["cursor"] + 1
            what = answer.rows or "lines"
            text += f"[{what} {first:,}-{after:,} of {total:,}; go on with cursor={after}]\n"
            data["next_cursor"] = after
        elif given["cursor"] > total:
            raise ToolError(f"cursor {given['cursor']}: there are {total} {answer.rows or 'lines'}; begin with 0")
        return text or "nothing\n", data


def _page(lines: Sequence[str], start: int, limit: int) -> tuple[list[str], int]:
    """Return the lines of a page, with the index at which the next page begins."""
    shown: list[str] = []
    room = MAX_CHARS
    for line in lines[start : start + limit]:
        if len(line) > _LONGEST_LINE:
            line = f"{line[:_LONGEST_LINE]} ... ({len(line) - _LONGEST_LINE:,} characters more)"
        room -= len(line) + 1
        if room < 0 and shown:
            break
        shown.append(line)
    return shown, start + len(shown)


def _schema_of(param: Param) -> dict[str, Any]:
    schemas = [_schema_of_type(one) for one in param.type.split("|")]
    schema: dict[str, Any] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    schema["description"] = param.doc
    if param.choices:
        schema["enum"] = list(param.choices)
    if param.minimum is not None:
        schema["minimum"] = param.minimum
    if param.maximum is not None:
        schema["maximum"] = param.maximum
    if param.default is not None:
        schema["default"] = param.default
    return schema


def _schema_of_type(text: str) -> dict[str, Any]:
    element = text.removesuffix("[]")
    schema: dict[str, Any] = {"type": _JSON_TYPES[element]}
    return schema if element == text else {"type": "array", "items": schema}
