"""Golden records in JSON lines, optionally compressed with gzip. Each line records one behavior of kube-scheduler.

Errors: RecordError is raised with file, line and reason; the caller can continue with other files.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.errors import KscheddError

Raw = Mapping[str, Any]
SUFFIXES = (".jsonl.gz", ".jsonl")


@attrs.define(eq=False)
class RecordError(KscheddError):
    file: str
    line: int  # 1-based line number; 0 if the error concerns the whole file
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}" if self.line else f"{self.file}: {self.why}"


_RECORDED: Final = re.compile(r"kube-scheduler \**v(\d+\.\d+(?:\.\d+)?)")


def recorded_version(file: Path) -> str | None:
    """Return the release with which a file of records was made: the first one named in the README beside it."""
    try:
        found = _RECORDED.search((file.parent / "README.md").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return found[1] if found else None


class UnsupportedRecord(Exception):
    """The error for a record that needs a feature which kschedd does not have."""


@attrs.frozen(eq=False)
class GoldenRecord:
    id: str
    family: str
    config: Raw | None
    objects: list[Raw]
    raw: Raw
    folder: Path | None = None  # the folder of the file, which contains further data for some records

    @property
    def want(self) -> Raw:
        want: Raw = self.raw["want"]
        return want

    @property
    def evidence(self) -> str:
        """The source of a fact, such as upstream-test, source or derived; "" for a recorded decision."""
        found: str = self.raw.get("evidence", "")
        return found

    @property
    def binding(self) -> Raw | None:
        """The expected state of a placed pod up to PreBind, if the record contains it."""
        return self.raw.get("binding")


def record_files(paths: Iterable[Path]) -> list[Path]:
    """Return the paths of files, and the files of golden records in the folders among the paths.

    Raises RecordError.
    """
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.name.endswith(SUFFIXES) and p.is_file())
            if not found:
                raise RecordError(str(path), 0, f"has no golden records: files ending in {' or '.join(SUFFIXES)}")
            files += found
        elif path.is_file():
            files.append(path)
        else:
            raise RecordError(str(path), 0, "no such file or folder")
    return files


def read_records(file: Path) -> Iterator[GoldenRecord]:
    """Yield the records of a file. Raises RecordError at the first line that is not a record."""
    number = 0
    try:
        with gzip.open(file, "rb") if file.name.endswith(".gz") else file.open("rb") as lines:
            for line in lines:
                number += 1
                if line.strip():
                    yield attrs.evolve(_record(json.loads(line)), folder=file.parent)
    except (OSError, EOFError, zlib.error) as fault:
        raise RecordError(str(file), number, f"cannot be read: {fault}") from fault
    except UnicodeDecodeError as fault:
        raise RecordError(str(file), number, f"is no text in UTF-8: {fault.reason}") from fault
    except RecursionError as fault:
        raise RecordError(str(file), number, "is nested too deeply") from fault
    except json.JSONDecodeError as fault:
        raise RecordError(str(file), number, f"is no JSON: {fault}") from fault
    except _NoRecord as fault:
        raise RecordError(str(file), number, f"is no golden record: {fault}") from fault


class _NoRecord(Exception):
    pass


# Required fields of a record with their types: the fields that the record's runner reads.
_FIELDS: Mapping[str, type | tuple[type, ...]] = {"id": str, "family": str, "objects": list, "want": dict}
_CASE: Mapping[str, type | tuple[type, ...]] = {**_FIELDS, "pod": dict}
_FACT: Mapping[str, type | tuple[type, ...]] = {"id": str, "family": str, "kind": str, "evidence": str}
_TRACE: Mapping[str, type | tuple[type, ...]] = {
    **_FIELDS,
    "feature_gates": dict,
    "graceful_deletion": bool,
    "autorun": bool,
    "ops": list,
}


_POOLS: Mapping[str, type | tuple[type, ...]] = {"id": str, "family": str}
_DESCHEDULING: Mapping[str, type | tuple[type, ...]] = {
    **_POOLS,
    "now": str,
    "policy": dict,
    "objects": list,
    "expect": dict,
}
DESCHEDULER: Final = "descheduler/"
AUTOSCALER: Final = "cluster-autoscaler/"
KARPENTER: Final = "karpenter/"


def _record(raw: Any) -> GoldenRecord:
    if not isinstance(raw, dict):
        raise _NoRecord("a mapping is expected")
    family = str(raw.get("family"))
    trace, descheduling, pools = (
        family == "traces",
        family.startswith(DESCHEDULER),
        family.startswith((AUTOSCALER, KARPENTER)),
    )
    fact = "kind" in raw and raw["kind"] != "cycle"
    fields = _DESCHEDULING if descheduling else _POOLS if pools else _FACT if fact else _TRACE if trace else _CASE
    for name, wanted in fields.items():
        if name not in raw:
            raise _NoRecord(f"{name} is missing")
        if not isinstance(raw[name], wanted):
            raise _NoRecord(f"{name} is {type(raw[name]).__name__}")
    if fact or pools:
        return GoldenRecord(raw["id"], raw["family"], None, [], raw)
    if descheduling:
        return GoldenRecord(raw["id"], raw["family"], None, raw["objects"], raw)
    config = raw.get("config")
    if config is not None and not isinstance(config, dict):
        raise _NoRecord("config must be null or a mapping")
    for place, obj in enumerate([*raw["objects"], *([] if trace else [raw["pod"]])]):
        if not (isinstance(obj, dict) and obj.get("kind") and isinstance(obj.get("metadata"), dict)):
            where = f"objects[{place}]" if place < len(raw["objects"]) else "pod"
            raise _NoRecord(f"{where} is no object: kind and metadata are expected")
    if trace:
        steps = raw["want"].get("steps")
        if not isinstance(steps, list) or len(steps) != len(raw["ops"]):
            raise _NoRecord("want.steps must have one step for each of ops")
    return GoldenRecord(raw["id"], raw["family"], config, raw["objects"], raw)
