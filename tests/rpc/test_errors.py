import enum
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from kschedd.errors import KscheddError
from kschedd.rpc.errors import read_wire_error
from kschedd.service.errors import CODES, BadParamsError, ParamFault, RpcError, UnknownMethodError
from kschedd.service.wire_errors import wire_error


class Mode(enum.Enum):
    FAST = "fast"


@attrs.frozen
class Place:
    line: int


@attrs.define(eq=False)
class ThingError(KscheddError):
    file: Path
    place: Place
    names: tuple[str, ...]
    mode: Mode
    big: int
    rpc_code: ClassVar[str] = "conflict"

    def __str__(self) -> str:
        return "thing"


class PlainError(KscheddError):
    pass


@pytest.mark.parametrize(
    ("error", "on_wire"),
    [
        pytest.param(PlainError("why"), ("invalid", "why", None), id="without-a-code-it-is-invalid"),
        pytest.param(PlainError(), ("invalid", "PlainError", None), id="without-words-its-name"),
        pytest.param(
            ThingError(Path("a.yaml"), Place(3), ("x", "y"), Mode.FAST, 2**70),
            (
                "conflict",
                "thing",
                {"file": "a.yaml", "place": {"line": 3}, "names": ["x", "y"], "mode": "fast", "big": str(2**70)},
            ),
            id="fields-become-data",
        ),
        pytest.param(RpcError("timeout", "late", {"s": 3}), ("timeout", "late", {"s": 3}), id="ours-goes-as-it-is"),
        pytest.param(
            UnknownMethodError("gt", ("get",)),
            ("unknown_method", 'no method "gt"; did you mean "get"?', {"method": "gt", "did_you_mean": ["get"]}),
            id="unknown-method",
        ),
        pytest.param(
            BadParamsError("get", (ParamFault("kind", "null", "string"),)),
            (
                "bad_params",
                "get: kind: got null, allowed: string",
                {"method": "get", "faults": [{"param": "kind", "got": "null", "allowed": "string", "hint": ""}]},
            ),
            id="bad-params",
        ),
    ],
)
def test_an_error_on_the_wire(error: KscheddError, on_wire: tuple[str, str, Any]) -> None:
    assert wire_error(error) == on_wire
    assert on_wire[0] in CODES


def test_errors_of_other_servers_are_taken_too() -> None:
    assert str(read_wire_error("just a string")) == "just a string"
    assert read_wire_error({"code": "gone", "message": "m", "data": 1}).data == 1
    assert read_wire_error({"code": 5}).code == "internal"
