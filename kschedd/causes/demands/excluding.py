"""Requirements that exclude certain nodes, and the option to replace them by requirements that these nodes meet."""

from collections.abc import Collection, Sequence
from typing import Any

from kschedd.api.selecting.selectors import IN
from kschedd.causes.case import Case
from kschedd.causes.demands.selecting import Demand, demands
from kschedd.causes.findings import RemedyOption, spec_edit
from kschedd.causes.words import joined

Spec = dict[str, Any]


def clashing(case: Case, nodes: Collection[str]) -> list[Demand]:
    """Return the pod's requirements that none of these nodes meets."""
    found: list[Demand] = []
    for alternative in demands(case.workload.pod_spec):
        unmet = [each for each in alternative if not any(_meets(case, each, name) for name in nodes)]
        if not unmet:  # each requirement is met by some node, but no node meets all of them
            unmet = [each for each in alternative if not all(_meets(case, each, name) for name in nodes)]
        if not found or len(unmet) < len(found):
            found = unmet
    return found


def _meets(case: Case, demand: Demand, name: str) -> bool:
    return demand.matches(case.nodes[name].labels, name)


def meeting(case: Case, nodes: Collection[str], against: Sequence[Demand], why: str) -> RemedyOption | None:
    """Return the option that replaces the requirements in `against` by requirements that these nodes meet."""
    if not against:
        return None
    edits, wanted, dropped = [], [], []
    for demand in against:
        there = sorted({case.nodes[n].labels[demand.key] for n in nodes if demand.key in case.nodes[n].labels})
        if demand.operator == IN and not demand.of_fields and there and (demand.term is not None or len(there) == 1):
            edits.append(demand.changed(demand.key, there))
            wanted.append(f"{demand.key}={'|'.join(there)}")
        else:
            edits.append(demand.removed)
            dropped.append(str(demand))

    def edit(spec: Spec) -> None:
        for each in edits:
            each(spec)

    parts = [f"require {joined(wanted)}, {why}"] if wanted else []
    parts += [f"do not require {joined(dropped)}"] if dropped else []
    return RemedyOption(joined(parts), edit=spec_edit(edit))
