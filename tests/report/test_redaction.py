"""Tests that each text field of a report is classified as a name, a message, or public."""

import re
from collections.abc import Iterable
from types import ModuleType

import attrs

from kschedd.causes.answers import ObjectNamed, PendingGroup
from kschedd.report import decisions, model
from kschedd.report.redaction import _FIELDS
from kschedd.service.nodes.answers import UsageAnswer
from kschedd.service.scheduling.answers import QueuedAnswer, WaitingAnswer

#: text fields without data of the cluster: titles, resources, plugins, quantities, words of the report
PUBLIC = frozenset(
    """
    ResourceUse.resource ResourceUse.capacity HeatMap.name ScoreMap.plugins ScoreMap.left_out ZoneUse.use
    Report.title Report.facts Report.notes FunnelStep.what Decision.plugins Checked.verdict Checked.usage
    CheckedChange.sign CheckedChange.change PodOnNode.phase AtEnd.counts UsageAnswer.allocatable UsageAnswer.requested
    QueuedAnswer.place QueuedAnswer.unschedulable_plugins QueuedAnswer.pending_plugins QueuedAnswer.gated_by
    WaitingAnswer.plugins PendingGroup.code PendingGroup.confidence ObjectNamed.kind
    """.split()
)
#: answers of methods that a redacted report contains; it contains no diagnoses, remedies and explanations
ANSWERS = (UsageAnswer, QueuedAnswer, WaitingAnswer, PendingGroup, ObjectNamed)


def _classes(module: ModuleType) -> list[type]:
    found = [each for each in vars(module).values() if isinstance(each, type) and attrs.has(each)]
    return [each for each in found if each.__module__ == module.__name__]


def _text_fields(classes: Iterable[type]) -> set[str]:
    return {
        f"{kind.__name__}.{field.name}"
        for kind in classes
        for field in attrs.fields(kind)
        if re.search(r"\b(str|PluginName|Place|Text|Amounts)\b", str(field.type))
    }


def test_each_field_of_text_is_a_name_a_message_or_public() -> None:
    fields = _text_fields([*_classes(model), *_classes(decisions), *ANSWERS])
    assert len(fields) > 20
    assert fields == PUBLIC | _FIELDS.keys()
