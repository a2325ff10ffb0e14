"""The object templates that a benchmark file names. The templates are YAML with Go's text/template.

Templates can use `.Index`, `.Count`, the step's templateParams, and a few functions, mostly for arithmetic. A template
without actions is parsed once, and all objects made from it share its parts: manifests must not be modified.

Paths are relative to the benchmark file, or up to release v1.31 to its parent folder.

Upstream decodes pods, nodes, volumes, claims and namespaces into Go types, so their field names are not case-sensitive
(`NodeAffinityPolicy`). This module therefore corrects the case of field names.

Source: Kubernetes v1.34, test/integration/scheduler_perf/create.go (getSpecFromTextTemplateFile, getTemplateFuncs).

Raises: PerfConfigError.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kschedd.api.schemas.schema import Fields, ListOf, MapOf, Schema, field_of, schema_of
from kschedd.api.text.documents import read_documents
from kschedd.bench.scheduler_perf.cases import PerfConfigError
from kschedd.bench.series import Raw
from kschedd.printing.templates.go_functions import ABSENT
from kschedd.printing.templates.go_template import GoTemplate, GoTemplateError


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError(f"cannot cast {value} to float64")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"cannot cast {value} to float64") from None


def _divided(dividend: Any, divisor: Any) -> float:
    if _number(divisor) == 0:
        raise ValueError("division by zero")
    return _number(dividend) / _number(divisor)


def _remainder(dividend: Any, divisor: Any) -> int:
    if int(_number(divisor)) == 0:
        raise ValueError("division by zero")
    return int(math.fmod(int(_number(dividend)), int(_number(divisor))))


FUNCTIONS: Final[Mapping[str, Any]] = {
    "AddFloat": lambda *numbers: math.fsum(map(_number, numbers)),
    "AddInt": lambda *numbers: int(math.fsum(map(_number, numbers))),
    "SubtractFloat": lambda left, right: _number(left) - _number(right),
    "SubtractInt": lambda left, right: int(_number(left) - _number(right)),
    "MultiplyFloat": lambda *numbers: math.prod(map(_number, numbers)),
    "MultiplyInt": lambda *numbers: int(math.prod(map(_number, numbers))),
    "DivideFloat": _divided,
    "DivideInt": lambda left, right: int(_divided(left, right)),
    "Mod": _remainder,
    "Int": lambda number: int(_number(number)),
    "JSON": lambda value: json.dumps(None if value is ABSENT else value),
}


class ObjectTemplate:
    """One template file.

    With `typed`, upstream decodes the object into Go types, so field names are not case-sensitive.
    """

    def __init__(self, path: Path, text: str, *, typed: bool) -> None:
        self._path = path
        self._typed = typed
        self._go: GoTemplate | None = None
        self._raw: Raw | None = None
        if "{{" in text:
            try:
                self._go = GoTemplate(text, FUNCTIONS)
            except GoTemplateError as wrong:
                raise self._wrong(wrong.line, wrong.why) from None
        else:
            self._raw = self._read(text)

    def rendered(self, values: Mapping[str, Any]) -> Raw:
        """Return the manifest with these values inserted. Raises PerfConfigError."""
        if self._raw is not None:
            return self._raw
        assert self._go is not None, "a template without a manifest has actions"
        try:
            return self._read(self._go.evaluate(values))
        except GoTemplateError as wrong:
            raise self._wrong(wrong.line, wrong.why) from None

    def _read(self, text: str) -> Raw:
        documents = list(read_documents(text))
        for document in documents:
            if document.faults:
                fault = document.faults[0]
                raise self._wrong(fault.line, fault.why)
        if len(documents) != 1 or not isinstance(documents[0].value, dict):
            raise self._wrong(1, "one object is expected")
        raw: Raw = documents[0].value
        version, kind = raw.get("apiVersion"), raw.get("kind")
        if not isinstance(version, str) or not isinstance(kind, str):
            raise self._wrong(1, "apiVersion and kind must be set")
        schema = schema_of(version, kind)
        return _spelled(raw, schema) if self._typed and schema is not None else raw

    def _wrong(self, line: int, why: str) -> PerfConfigError:
        return PerfConfigError((f"{self._path}:{line}: {why}",))


def _spelled(value: Any, schema: Schema) -> Any:
    """Return the value with its field names corrected to the spelling in the schema."""
    if isinstance(schema, ListOf) and isinstance(value, list):
        return [_spelled(each, schema.item) for each in value]
    if isinstance(schema, MapOf) and isinstance(value, dict):
        return {key: _spelled(each, schema.item) for key, each in value.items()}
    if not isinstance(schema, Fields) or not isinstance(value, dict):
        return value
    names = {name.lower(): name for name in schema}
    spelled: dict[str, Any] = {}
    for key, each in value.items():
        name = str(key if key in schema else names.get(key.lower(), key))
        spelled[name] = _spelled(each, field_of(schema, name)[0])
    return spelled


class TemplateFolder:
    """The templates beside a benchmark file; each is read once."""

    def __init__(self, config: Path) -> None:
        self._folders = (config.parent, config.parent.parent)
        self._read: dict[tuple[str, bool], ObjectTemplate] = {}

    def path(self, name: str) -> Path:
        """Return the path of that file. If it does not exist, return the path beside the benchmark file."""
        places = [folder / name for folder in self._folders]
        return next((place for place in places if place.is_file()), places[0])

    def get(self, name: str, *, typed: bool = False) -> ObjectTemplate:
        found = self._read.get((name, typed))
        if found is None:
            path = self.path(name)
            found = self._read[name, typed] = ObjectTemplate(path, read_text(path), typed=typed)
        return found


def read_text(path: Path) -> str:
    """Return the content of a file. Raises PerfConfigError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as wrong:
        raise PerfConfigError((f"{path}: cannot be read: {wrong.strerror}",)) from None
    except UnicodeDecodeError:
        raise PerfConfigError((f"{path}: cannot be read: it is not UTF-8",)) from None
