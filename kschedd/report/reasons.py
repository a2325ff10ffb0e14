"""Kinds of reasons: the message of a FitError without its counts. The report groups pending pods by kind."""

import re
from functools import lru_cache
from typing import Final

_HEAD: Final = re.compile(r"^\d+/\d+ nodes are available: ?")
_POST_FILTER: Final = re.compile(r"\. .*|\.$", re.DOTALL)  # PostFilter's message follows the reasons
_COUNT: Final = re.compile(r"^\d+ ")
_LONGEST: Final = 160

NO_NODES: Final = "no node is left"


@lru_cache(4096)
def reasons_of(message: str) -> str:
    """Return the reasons in a message of kube-scheduler without the counts of nodes.

    For example, `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.` results in `Insufficient
    cpu; node(s) were unschedulable`.
    """
    head = _HEAD.match(message)
    if head is None:
        return _short(message.strip()) or NO_NODES
    rest = _POST_FILTER.sub("", message[head.end() :], count=1)
    kinds: list[str] = []
    for part in rest.split(", "):
        counted = _COUNT.match(part)
        if counted is None and kinds:
            kinds[-1] += f", {part}"  # a comma within a reason
        else:
            kinds.append(part[counted.end() :] if counted else part)
    return _short("; ".join(sorted({kind for kind in kinds if kind}))) or NO_NODES


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
