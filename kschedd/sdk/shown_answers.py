"""The daemon's answers about causes, plans and comparisons with tables, displayed as on the command line."""

from html import escape
from typing import Any

import attrs

from kschedd.answers import plain
from kschedd.causes.answers import DiagnosisAnswer, RemedyAnswer
from kschedd.sdk.records import Records
from kschedd.simulation.comparing.changes import DiffAnswer, NodeChange, ObjectChange, PodChange, UsageChange
from kschedd.simulation.comparing.comparison import ChangedPod, PlacementComparison


@attrs.frozen(kw_only=True)
class WorkloadExplanation(DiagnosisAnswer):
    """The result of `explain`; `str` returns the text that the command line prints.

    * `cause`, `also`: the main cause and further causes; each has a code, a message, and its evidence.
    * `remedies`: changes that were verified on forks, the best first.
    * `wanted`, `scheduled`, `pending`, `missing`: numbers of the workload's pods.
    """

    remedies: Records[RemedyAnswer]

    def __str__(self) -> str:
        from kschedd.printing.reports.causes import diagnosis
        from kschedd.printing.terminal.style import TerminalStyle

        return diagnosis(plain(self), TerminalStyle()).rstrip()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@attrs.frozen
class PlannedChanges(DiffAnswer):
    """The result of `plan`: the differences between the cluster and the final state of the fork.

    `str` gives their text.

    * `pods`: pods that are placed, moved, pending, gone, ended or orphaned; `nodes`, `objects`: nodes and objects that
      differ.
    * `usage`: the requested share of the nodes' resources, from 0 to 1, before and after.
    * `elapsed_s`: the virtual time in seconds that passed in the fork.
    """

    pods: Records[PodChange]
    nodes: Records[NodeChange]
    objects: Records[ObjectChange]
    usage: Records[UsageChange]

    def __str__(self) -> str:
        from kschedd.printing.reports.forks import diff_text
        from kschedd.printing.terminal.style import TerminalStyle

        return diff_text(plain(self), TerminalStyle(), len(self.pods)).rstrip()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@attrs.frozen
class ConfigComparison(PlacementComparison):
    """The result of `compare` for a configuration: `a` is the present configuration, `b` the other one.

    * `different`: the pods that have another node, or another reason for having none, in the order of their attempts.
    * `pending`: the number of pods without a node: under `a` and under `b`.
    """

    different: Records[ChangedPod]


def explained(found: DiagnosisAnswer) -> WorkloadExplanation:
    """Return the answer with its tables."""
    return WorkloadExplanation(**_with_tables(found, remedies=RemedyAnswer))


def planned(found: DiffAnswer) -> PlannedChanges:
    """Return the answer with its tables."""
    return PlannedChanges(
        **_with_tables(found, pods=PodChange, nodes=NodeChange, objects=ObjectChange, usage=UsageChange)
    )


def compared(found: PlacementComparison) -> ConfigComparison:
    """Return the answer with its tables."""
    return ConfigComparison(**_with_tables(found, different=ChangedPod))


def _with_tables(found: Any, **kinds: type[Any]) -> dict[str, Any]:
    fields = attrs.asdict(found, recurse=False)
    return fields | {name: Records(kind, fields[name]) for name, kind in kinds.items()}
