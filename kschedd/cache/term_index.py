"""An index of affinity terms by namespace and label, which limits the number of terms with which a pod is compared.

A term is stored under one key: its namespace, if it names only one, and the first label for which it requires one exact
value. A pod is looked up with every key that can match it: its namespace or none, combined with each of its labels or
none. A pod is therefore compared only with terms that require one of its labels, or that require no exact label value.
The index returns candidates; the caller must still check whether they match.
"""

from collections.abc import Iterator, Mapping

from kschedd.api.selecting.selectors import IN
from kschedd.api.selecting.terms import PodAffinityTerm

TermKey = tuple[str | None, str, str]  # namespace (None: any), label key ("": none), label value


def term_key(term: PodAffinityTerm) -> TermKey:
    namespace = None
    if term.namespace_selector is None and len(term.namespaces) == 1:
        (namespace,) = term.namespaces
    for requirement in term.selector.requirements:
        if requirement.operator == IN and len(requirement.values) == 1:
            return namespace, requirement.key, requirement.values[0]
    return namespace, "", ""


def keys_matching(namespace: str, labels: Mapping[str, str]) -> Iterator[TermKey]:
    """Yield every key under which a term that matches such a pod may be stored."""
    yield namespace, "", ""
    yield None, "", ""
    for key, value in labels.items():
        yield namespace, key, value
        yield None, key, value
