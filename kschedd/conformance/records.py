"""Reading golden records: gzip-compressed JSON lines, one record a line, as kube-scheduler's behaviour was recorded.

Errors: RecordError says file, line and what is wrong; other files are still read.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from kschedd.errors import KscheddError

Raw = Mapping[str, Any]
SUFFIXES = (".jsonl.gz", ".jsonl")


@attrs.define(eq=False)
class RecordError(KscheddError):
    file: str
    line: int  # 1-based; 0 where the file as a whole is at fault
    why: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.why}" if self.line else f"{self.file}: {self.why}"


@attrs.frozen(eq=False)
class Record:
    id: str
    family: str
    config: Raw | None
    objects: list[Raw]
    raw: Raw

    @property
    def want(self) -> Raw:
        want: Raw = self.raw["want"]
        return want


def record_files(paths: Iterable[Path]) -> list[Path]:
    """The files of golden records among the paths, and in the folders among them. Raises RecordError if there is none."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.name.endswith(SUFFIXES))
            if not found:
                raise RecordError(str(path), 0, f"has no golden records: files ending in {' or '.join(SUFFIXES)}")
            files += found
        elif path.is_file():
            files.append(path)
        else:
            raise RecordError(str(path), 0, "no such file or folder")
    return files


def read_records(file: Path) -> Iterator[Record]:
    """The records of a file, one at a time. Raises RecordError at the first that is none."""
    number = 0
    try:
        with gzip.open(file, "rb") if file.name.endswith(".gz") else file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _record(json.loads(line))
    except (OSError, EOFError, ValueError, KeyError, TypeError) as fault:
        raise RecordError(str(file), number, f"is no golden record: {fault!r}") from fault


def _record(raw: Raw) -> Record:
    return Record(raw["id"], raw["family"], raw.get("config"), raw["objects"], raw)
