"""Tests that each text field of a report is classified as a name, a message, or public."""

from types import ModuleType

import attrs

from kschedd.report import decisions, model
from kschedd.report.redaction import _FIELDS

#: text fields without data of the cluster: titles, resources, plugins, quantities, words of the report
PUBLIC = frozenset(
    """
    ResourceUse.resource ResourceUse.capacity HeatMap.name ScoreMap.plugins ScoreMap.left_out NodeAtEnd.use ZoneUse.use
    Report.title Report.facts Report.notes FunnelStep.what Decision.plugins Checked.verdict Checked.usage
    Explained.workload Explained.text CauseGroup.code
    """.split()
)  # a redacted report has no explanations


def _text_fields(module: ModuleType) -> set[str]:
    classes = [each for each in vars(module).values() if isinstance(each, type) and attrs.has(each)]
    return {
        f"{kind.__name__}.{field.name}"
        for kind in classes
        if kind.__module__ == module.__name__
        for field in attrs.fields(kind)
        if "str" in str(field.type).replace("structure", "")
    }


def test_each_field_of_text_is_a_name_a_message_or_public() -> None:
    fields = _text_fields(model) | _text_fields(decisions)
    assert len(fields) > 20
    assert fields == PUBLIC | _FIELDS.keys()
