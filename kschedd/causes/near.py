"""Similar names: existing names that resemble a name that does not exist."""

import difflib
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from kschedd.api.nodes import RENAMED_LABELS

_ALIKE: Final = 0.7  # smallest similarity of two names, from 0 to 1 (equal)
_ALIKE_KEYS: Final = 0.6  # smallest similarity of label keys that have the wanted value
_LONG: Final = 4  # letters

#: current name of each label that was renamed or is often misspelled.
#: Sources: kubernetes.io/docs/reference/labels-annotations-taints,
#: karpenter.sh/docs/upgrading/v1beta1-migration, cloud.google.com/kubernetes-engine/docs/concepts/spot-vms
LIKELY_LABELS: Final = {
    **RENAMED_LABELS,
    "node-role.kubernetes.io/master": "node-role.kubernetes.io/control-plane",
    "karpenter.sh/provisioner-name": "karpenter.sh/nodepool",
    "cloud.google.com/gke-preemptible": "cloud.google.com/gke-spot",
    "kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/hostname": "kubernetes.io/hostname",
}

#: labels with the name of an application, which are often confused
_NAMES: Final = ("app.kubernetes.io/name", "app", "k8s-app", "name", "app.kubernetes.io/instance", "run")


def nearest(word: str, names: Iterable[str], alike: float = _ALIKE) -> str | None:
    """Return the name that is most similar to the word, or None if no name is similar.

    Differences of case and separators have little effect.
    """
    best, ratio = None, alike
    for name in sorted(set(names)):
        if name == word:
            continue
        found = likeness(word, name)
        if found > ratio or (found == ratio and best is None):
            best, ratio = name, found
    return best


def likeness(one: str, other: str) -> float:
    """Return the similarity of two names from 0 to 1; 1 if they differ in case and separators only.

    Each part of a domain is compared, so big.example.com is not similar to gpu.example.com.
    """
    parts = re.split("[./]", one), re.split("[./]", other)
    if len(parts[0]) == len(parts[1]) > 1:
        return min(_likeness(*pair) for pair in zip(*parts, strict=True))
    if (
        "/" in one and "/" in other
    ):  # compare prefix and name separately: kubernetes.io/host does not resemble beta.kubernetes.io/os
        return min(_likeness(*pair) for pair in zip(one.split("/", 1), other.split("/", 1), strict=True))
    return _likeness(one, other)


def _likeness(one: str, other: str) -> float:
    first, second = _plain(one), _plain(other)
    if first == second:
        return 1.0
    if sorted(first) == sorted(second) and len(first) > 1:
        return 0.95  # letters are swapped
    if min(len(first), len(second)) < 3:
        return 0.0
    if len(first) == len(second) and set(first) == set(second):
        return 0.9  # the names differ only by a repeated letter, such as ssdd and ssd
    if min(len(first), len(second)) >= _LONG and (first.startswith(second) or second.startswith(first)):
        return 0.8  # a part was added or omitted
    return difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()


def nearest_key(key: str, keys: Iterable[str], having: Iterable[str] = ()) -> str | None:
    """Return the label key that was probably intended.

    `having` contains the keys with the wanted value; for these keys, a lower similarity is enough.
    """
    known, wanted = set(keys), set(having)
    renamed = LIKELY_LABELS.get(key)
    if renamed in known:
        return renamed
    if key in _NAMES and (named := next((each for each in _NAMES if each in wanted), None)) is not None:
        return named
    with_value = nearest(key, wanted, _ALIKE_KEYS) or _same_name(key, wanted) or _same_words(key, wanted)
    return with_value or nearest(key, known) or _same_name(key, known)


def _same_words(key: str, keys: set[str]) -> str | None:
    """Return the only key whose name begins with this key's name, such as nodegroup-name for nodegroup."""
    name = _plain(key.rpartition("/")[2])
    names = {other: _plain(other.rpartition("/")[2]) for other in keys}
    found = [other for other, own in names.items() if len(name) >= _LONG and own.startswith(name)]
    return found[0] if len(found) == 1 else None


def _same_name(key: str, keys: set[str]) -> str | None:
    """Return the only key that differs only in its prefix."""
    name = key.rpartition("/")[2]
    found = [other for other in sorted(keys) if other.rpartition("/")[2] == name]
    return found[0] if len(found) == 1 else None


@lru_cache(1024)
def _plain(text: str) -> str:
    return re.sub(r"[-_. ]", "", text.casefold())
