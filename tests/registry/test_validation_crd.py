"""Tests of upstream's rules for the names, versions and conversions of CustomResourceDefinitions, one per row."""

from typing import Any

import pytest

from kschedd.registry.validation import default_and_validate
from tests.api.objects import Raw
from tests.store.definitions import definition

MIXED = "may have mixed case, but should otherwise match: a DNS-1035 label must consist"
TYPES = "must be one of boolean,date,integer,number,string"
COLUMNS = "spec.additionalPrinterColumns[0]"
CONVERSION = "spec.conversion"


def answer(**spec: Any) -> list[str]:
    raw = definition()
    return [str(fault) for fault in default_and_validate({**raw, "spec": {**raw["spec"], **spec}}).faults]


def named(**names: Any) -> Raw:
    return {"names": {"kind": "Widget", "plural": "widgets", **names}}


def versioned(*columns: Raw, **fields: Any) -> Raw:
    schema = {"openAPIV3Schema": {"type": "object"}}
    listed = {"additionalPrinterColumns": list(columns)} if columns else {}
    return {"versions": [{"name": "v1", "served": True, "storage": True, "schema": schema, **listed, **fields}]}


def converted(client: Raw | None, *versions: str, strategy: str = "Webhook") -> Raw:
    webhook = {"clientConfig": client, "conversionReviewVersions": list(versions)}
    return {"conversion": {"strategy": strategy, "webhook": webhook}}


COLUMN = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
URL = {"url": "https://example.com"}


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        (named(singular="Widget"), ['spec.names.singular: Invalid value: "Widget": a DNS-1035 label must consist']),
        (named(listKind="Widget_List"), [f'spec.names.listKind: Invalid value: "Widget_List": {MIXED}']),
        (named(categories=["all", "A"]), ['spec.names.categories[1]: Invalid value: "A": a DNS-1035 label must']),
        (named(shortNames=["w", ""]), ['spec.names.shortNames[1]: Invalid value: "": a DNS-1035 label must consist']),
        (versioned(COLUMN), []),
        (
            versioned({"format": "int16", "jsonPath": "spec"}),
            [
                f"{COLUMNS}.name: Required value",
                f"{COLUMNS}.type: Required value: {TYPES}",
                f'{COLUMNS}.format: Invalid value: "int16": must be one of byte,date,date-time,double,float,int32,',
                f'{COLUMNS}.JSONPath: Invalid value: "spec": must be a simple json path starting with .',
            ],
        ),
        (
            versioned({**COLUMN, "type": "Quantity", "jsonPath": ""}),
            [f'{COLUMNS}.type: Invalid value: "Quantity": {TYPES}', f"{COLUMNS}.JSONPath: Required value"],
        ),
        (versioned(deprecated=True, deprecationWarning="use v2"), []),
        (
            versioned(deprecationWarning="use v2"),
            ['spec.versions[0].deprecationWarning: Invalid value: "use v2": can only be set for deprecated versions'],
        ),
        (
            versioned(deprecated=True, deprecationWarning=""),
            ['spec.versions[0].deprecationWarning: Invalid value: "": must not be an empty string'],
        ),
        (converted(URL, "v1"), []),
        (
            converted({}, "v2", "v2"),
            [
                f"{CONVERSION}.webhookClientConfig: Required value: exactly one of url or service is required",
                f'{CONVERSION}.conversionReviewVersions[1]: Invalid value: "v2": duplicate version',
                f'{CONVERSION}.conversionReviewVersions: Invalid value: ["v2","v2"]: must include at least one of',
            ],
        ),
        (converted(URL), [f"{CONVERSION}.conversionReviewVersions: Required value"]),
        (
            converted(None, "v1", strategy="None"),
            [f"{CONVERSION}.conversionReviewVersions: Forbidden: should not be set when strategy"],
        ),
    ],
)
def test_what_is_said(spec: Raw, faults: list[str]) -> None:
    found = answer(**spec)
    assert len(found) == len(faults), found
    assert all(text.startswith(begin) for text, begin in zip(found, faults, strict=True)), found
