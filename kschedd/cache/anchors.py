"""Where a term is filed so that the pods it speaks of find it without asking every term there is.

A term is filed under one anchor: its namespace, if it names just one, and the first label it wants to have one exact
value. A pod looks under its own namespace and none, and under each of its labels and none. So what a pod is compared
with is what has a label in common with it, not everything; the comparison itself is still to be made.
"""

from collections.abc import Iterator, Mapping

from kschedd.api.selectors import IN
from kschedd.api.terms import PodAffinityTerm

Anchor = tuple[str | None, str, str]  # namespace (None: any), label key ("": none) and value


def anchor_of(term: PodAffinityTerm) -> Anchor:
    namespace = None
    if term.namespace_selector is None and len(term.namespaces) == 1:
        (namespace,) = term.namespaces
    for requirement in term.selector.requirements:
        if requirement.operator == IN and len(requirement.values) == 1:
            return namespace, requirement.key, requirement.values[0]
    return namespace, "", ""


def anchors_for(namespace: str, labels: Mapping[str, str]) -> Iterator[Anchor]:
    """Every anchor under which a term that speaks of such a pod can be filed."""
    yield namespace, "", ""
    yield None, "", ""
    for key, value in labels.items():
        yield namespace, key, value
        yield None, key, value
