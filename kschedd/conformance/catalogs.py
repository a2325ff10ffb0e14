"""Instance types and pods of Karpenter's records."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs

from kschedd.api.objects import with_fields
from kschedd.api.pods import Pod
from kschedd.conformance.records import GoldenRecord
from kschedd.pools.karpenter.instance_types import InstanceType, instance_types_of

Raw = Mapping[str, Any]


def pod_of(raw: Raw) -> Pod:
    """Return a pod of a record; its key is its UID."""
    meta = raw["metadata"]
    return Pod.from_raw(with_fields(raw, "metadata", uid=meta.get("uid") or f"{meta.get('namespace')}/{meta['name']}"))


@lru_cache(8)
def _named_catalog(file: Path) -> list[Raw]:
    found: list[Raw] = json.loads(file.read_text(encoding="utf-8"))
    return found


def catalog(record: GoldenRecord) -> list[InstanceType]:
    """Return the instance types of a record: those of a named file, possibly selected and changed, or its own."""
    stated = record.raw["catalog"]
    if isinstance(stated, list):
        return instance_types_of(stated)
    assert record.folder is not None, "records are read from files"
    name = stated if isinstance(stated, str) else stated["base"]
    raws = _named_catalog(record.folder / "data" / f"catalog-{name}.json")
    if isinstance(stated, str):
        return _types_of_file(record.folder / "data" / f"catalog-{name}.json")
    types = instance_types_of(raws)
    for key, value in (stated.get("where") or {}).items():
        values = value if isinstance(value, list) else [value]
        types = [each for each in types if key in each.requirements and {*values} & each.requirements[key].values]
    types = types[: stated.get("first", len(types))]
    patch = stated.get("patch") or {}
    return [_patched(each, patch[each.name]["Price"]) if each.name in patch else each for each in types]


@lru_cache(8)
def _types_of_file(file: Path) -> list[InstanceType]:
    return instance_types_of(_named_catalog(file))


def _patched(each: InstanceType, price: float) -> InstanceType:
    first, *others = each.offerings
    return attrs.evolve(each, offerings=[attrs.evolve(first, price=price), *others])
