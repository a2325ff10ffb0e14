"""What a tool is, and how its answer is cut to what a model can read.

An answer is a text: lines that are shown always, and lines of which a call shows a page. A page ends with the `cursor`
that shows the next one. `data` has for programs what a next step needs: commands, places, numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.errors import KscheddError
from kschedd.service.params import Param, bind

MAX_CHARS: Final = 8_000  # of a page: about 2,000 tokens
_LONGEST_LINE: Final = 2_000
_JSON_TYPES: Final = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "map": "object",
    "array": "array",
}

CURSOR: Final = Param("cursor", "integer", False, 0, "where to go on, as the end of an answer says", minimum=0)


@attrs.define(eq=False)
class ToolError(KscheddError):
    """A call that a tool refuses: what is wrong, and what is allowed."""

    why: str


@attrs.frozen
class Answer:
    """What a tool found. `rows`: what the lines are called, "" for a text."""

    head: str = ""  # with its line ends; on every page
    lines: Sequence[str] = ()
    rows: str = ""
    data: Mapping[str, Any] = {}

    @classmethod
    def of_text(cls, text: str, data: Mapping[str, Any] = {}) -> "Answer":
        return cls(lines=text.splitlines(), data=data)


Run = Callable[[dict[str, Any]], Answer]


@attrs.frozen
class Tool:
    """`run` is given a value for each parameter. `limit`: so many lines a page, if the caller says no other number."""

    name: str
    doc: str
    params: tuple[Param, ...]
    run: Run
    writes: bool = False
    limit: int = 0  # 0: as many as there is room for

    @property
    def declared(self) -> tuple[Param, ...]:
        if not self.limit:
            return (*self.params, CURSOR)
        limit = Param("limit", "integer", False, self.limit, "so many lines", minimum=1, maximum=1000)
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

    def call(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """The text and the data of a page. Raises BadParamsError, and what the tool raises."""
        given = bind(self.name, self.declared, [dict(arguments)])
        answer = self.run(given)
        shown, after = _page(answer.lines, given["cursor"], given.get("limit") or len(answer.lines))
        total = len(answer.lines)
        text = answer.head + "".join(f"{line}\n" for line in shown)
        data = dict(answer.data)
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
    """The lines of a page, and where the next one begins."""
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
