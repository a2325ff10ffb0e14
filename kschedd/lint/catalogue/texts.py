"""Rules about texts: names of metrics, messages and conditions that scripts and dashboards search for.

The rules check all texts of an object, such as the dashboards in a ConfigMap, and files that contain no objects.
"""

from collections.abc import Iterator
from typing import Final

from kschedd.lint.rules import Hit, Level, RuleSet
from kschedd.lint.subjects import KnownObjects, LintedObject

RULES: Final = RuleSet()
SCRIPT: Final = "Script"
"""The kind of a file that holds no objects: `text` has its lines."""
# Kinds whose texts are data or scripts of a user. Texts of other kinds are descriptions, which may mention any name.
_WITH_TEXTS: Final = (
    SCRIPT,
    "ConfigMap",
    "PrometheusRule",
    "GrafanaDashboard",
    "Deployment",
    "CronJob",
    "Job",
    "Pod",
    "DaemonSet",
    "StatefulSet",
)


# Programs and pages mention conditions and messages of other programs, and quote messages without searching for them.
_PROGRAMS_AND_PAGES: Final = (".go", ".md")


def _text_rule(
    code: str, wanted: str, *eras: tuple[str, Level, str], fix: str, source: str, is_metric: bool = False
) -> None:
    def check(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
        if wanted in found.all_text and (is_metric or not found.source.endswith(_PROGRAMS_AND_PAGES)):
            yield from (Hit(path) for path, text in found.texts if wanted in text)

    RULES.add(code, _WITH_TEXTS, *eras, fix=fix, source=source)(check)


_text_rule(
    "metric-claims",
    "scheduler_resourceclaim_creates_total",
    ("", "fine", "the metric scheduler_resourceclaim_creates_total counts claims"),
    ("1.37", "warning", "the metric scheduler_resourceclaim_creates_total does not exist"),
    fix="Use dynamic_resource_allocation_resourceclaim_creates_total.",
    source="kubernetes#138542",
    is_metric=True,
)
_text_rule(
    "metric-cache-size",
    "scheduler_scheduler_cache_size",
    ("", "note", "the metric scheduler_scheduler_cache_size is deprecated"),
    ("1.34", "warning", "the metric scheduler_scheduler_cache_size does not exist"),
    fix="Use scheduler_cache_size.",
    source="kubernetes#131425",
    is_metric=True,
)
_text_rule(
    "metric-pod-duration",
    "scheduler_pod_scheduling_duration_seconds",
    ("", "note", "the metric scheduler_pod_scheduling_duration_seconds is deprecated"),
    ("1.33", "warning", "the metric scheduler_pod_scheduling_duration_seconds does not exist"),
    fix="Use scheduler_pod_scheduling_sli_duration_seconds.",
    source="notes of 1.33",
    is_metric=True,
)
_text_rule(
    "text-no-new-claims",
    "no new claims to deallocate",
    ("", "fine", "FailedScheduling has the text `no new claims to deallocate`"),
    ("1.37", "warning", "FailedScheduling does not have the text `no new claims to deallocate`"),
    fix="Search for the reasons of the nodes instead.",
    source="kubernetes#140222",
)
_text_rule(
    "text-taint",
    "untolerated taint {",
    ("", "fine", "FailedScheduling names the untolerated taint"),
    ("1.34.2", "warning", "FailedScheduling says `untolerated taint(s)` and does not name the taint"),
    fix="Search only for `untolerated taint`.",
    source="kubernetes#134740",
)
_text_rule(
    "text-preemption",
    "preemption: 0/",
    ("", "fine", "the message of a pod that preempts ends after the reasons of the nodes"),
    ("1.37", "note", "the message of a pod that preempts goes on with `preemption: found a potential placement`"),
    fix="Accept both texts after `preemption:`.",
    source="kubernetes#140180",
)
_text_rule(
    "podgroup-condition",
    "PodGroupScheduled",
    ("", "fine", "the condition PodGroupScheduled tells whether a group is placed"),
    ("1.37", "warning", "the condition PodGroupScheduled is called PodGroupInitiallyScheduled"),
    fix="Check both conditions.",
    source="kubernetes#139743",
)
