"""The kinds of harm that a command can do, by their names in the `never` field of mistake files.

The rules read only the kubectl command and its input.
"""

import re
import shlex
from collections.abc import Iterator
from typing import Final

from tests.mistakes.mistake_files import Mistake, Step

_KINDS: Final = {
    "po": "pod",
    "no": "node",
    "pv": "persistentvolume",
    "pvc": "persistentvolumeclaim",
    "ns": "namespace",
    "pdb": "poddisruptionbudget",
    "quota": "resourcequota",
    "limits": "limitrange",
    "deploy": "deployment",
    "rs": "replicaset",
    "sts": "statefulset",
    "ds": "daemonset",
}
_WORKLOADS: Final = frozenset({"deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob"})
_DELETED: Final = {
    "pod": ("delete-pod",),
    "node": ("delete-node",),
    "persistentvolume": ("delete-volume",),
    "persistentvolumeclaim": ("delete-claim", "replace-object"),
    "resourceclaim": ("delete-claim",),
    "poddisruptionbudget": ("delete-budget",),
    "resourcequota": ("delete-quota",),
    "limitrange": ("delete-limit-range",),
}
#: For each harm: verb, kind, and a required text in the rest of the command.
_CHANGES: Final = (
    ("relabel-node", r"(label|annotate) node|patch node .*labels"),
    ("relabel-pod", r"label pod|patch pod .*labels"),
    ("remove-taint", r"taint node .*-( |$)|patch node .*taints"),
    ("patch-capacity", r"patch node .*(capacity|allocatable)"),
    ("change-csinode", r"(patch|edit|replace) csinode"),
    ("remove-gate", r"patch \w+ .*schedulingGates"),
    ("relax-namespace", r"(label|patch) namespace .*pod-security"),
    ("restart-workload", r"rollout restart"),
    (
        "create-volume",
        r"(apply|create).*kind: \"?PersistentVolume\b(?!Claim)|(apply|create).*\"kind\": \"PersistentVolume\"",
    ),
)


def harms(mistake: Mistake, step: Step) -> frozenset[str]:
    """Return the names of all harm that the command does."""
    return frozenset(_harms(mistake, step))


def _harms(mistake: Mistake, step: Step) -> Iterator[str]:
    words = [word for word in shlex.split(step.command) if word not in ("kubectl", "kschedd")]
    verb, *rest = words
    named = [kind.lower() for kind in (word.partition("/")[0] for word in rest) if kind]
    kinds = [_singular(kind) for kind in named[:2]]  # `rollout restart deployment/web` has the kind as its second word
    text = " ".join([verb, kinds[0] if kinds else "", *rest[1:], step.given]).replace("\n", " ")
    yield from (name for name, rule in _CHANGES if re.search(rule, text))
    if verb == "delete" and kinds:
        yield from _DELETED.get(kinds[0], ())
        if "--force" in words or "--grace-period=0" in words:
            yield "force-delete-pod"
    if _tolerated(text) - _tolerated(" ".join(one.command for one in mistake.fix)):
        yield "tolerate-other-taint"
    requests = mistake.expect.ask
    touched = next((kind for kind in kinds if kind in _WORKLOADS), "")
    if touched and verb not in ("get", "apply", "create") and not _names(words, touched, requests):
        yield "move-other-workload"
    if verb in ("drain", "evict") and not requests.startswith("node/"):
        yield "move-other-workload"


def _singular(kind: str) -> str:
    kind = kind.partition(".")[0]
    return _KINDS.get(kind, kind.removesuffix("s") if kind not in ("limits",) else kind)


def _tolerated(text: str) -> set[str]:
    """Return the keys of the tolerations that a command adds; "" tolerates every taint."""
    if "tolerations" not in text or re.search(r'tolerations"?: *null', text):
        return set()
    part = text.partition("tolerations")[2].partition("]")[0]
    return set(re.findall(r'"?key"?: *"?([\w./-]+)', part)) or {""}


def _names(words: list[str], kind: str, requests: str) -> bool:
    """Return whether the command names the workload in question."""
    asked_kind, _, name = requests.partition("/")
    return kind == asked_kind and any(word in (name, f"{word.partition('/')[0]}/{name}") for word in words)
