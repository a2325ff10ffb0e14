"""`describe` of an object of any kind: pods and nodes have descriptions of their own."""

from kschedd.printing.columns import Raw
from kschedd.printing.describe import DescribeContext, describe_any
from kschedd.printing.describe_node import describe_node
from kschedd.printing.describe_pod import describe_pod


def describe(raw: Raw, related: DescribeContext) -> str:
    """Everything worth saying of an object."""
    special = {"Pod": describe_pod, "Node": describe_node}.get(str(raw.get("kind")))
    return special(raw, related) if special else describe_any(raw, related)
