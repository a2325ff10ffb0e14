"""Output of `describe`: pods and nodes have their own descriptions, and all other kinds share one."""

from kschedd.printing.columns.by_kind import Raw
from kschedd.printing.describing.describe import DescribeContext, describe_any
from kschedd.printing.describing.node import describe_node
from kschedd.printing.describing.pod import describe_pod


def describe(raw: Raw, related: DescribeContext) -> str:
    """Return the description of an object."""
    special = {"Pod": describe_pod, "Node": describe_node}.get(str(raw.get("kind")))
    return special(raw, related) if special else describe_any(raw, related)
