"""What a search for causes comes to: a cause, and options, each a change that a person might choose.

An option changes the workload's own manifest, or does something else by steps. Options of several causes are carried
out together. Nothing here touches a cluster: `remedies` turns options into commands, and tries these.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.causes.answers import CauseAnswer, ObjectNamed
from kschedd.causes.steps import RemedyStep
from kschedd.causes.words import counted, cut
from kschedd.causes.workload import Edit, ExaminedWorkload

#: kinds of remedies, in the order in which a person would choose
CHANGE_WORKLOAD: Final = "change-workload"
REPLACE_WORKLOAD: Final = "replace-workload"  # its template cannot be changed
REPLACE_POD: Final = "replace-pod"  # its controller makes a different one
REPLACE_OBJECT: Final = "replace-object"  # it cannot be changed, as a claim's class
ADD_OBJECT: Final = "add-object"
CHANGE_OBJECT: Final = "change-object"  # such as a quota
CHANGE_OTHER: Final = "change-other-workload"
CHANGE_NODE: Final = "change-node"
WORKAROUND: Final = "workaround"
KINDS: Final = (
    CHANGE_WORKLOAD,
    REPLACE_WORKLOAD,
    REPLACE_POD,
    REPLACE_OBJECT,
    ADD_OBJECT,
    CHANGE_OBJECT,
    CHANGE_OTHER,
    CHANGE_NODE,
    WORKAROUND,
)


@attrs.frozen(eq=False)
class RemedyOption:
    """`summary` completes "remedy:", as in `use node-pool=general`."""

    summary: str
    kind: str = CHANGE_WORKLOAD
    edit: Edit | None = None
    steps: Sequence[RemedyStep] = ()
    target: str = ""  # "": the workload
    after: Sequence[RemedyStep] = ()  # once the workload is changed
    less: bool = False  # the workload is less than it was to be then: what keeps it whole comes first


@attrs.frozen(eq=False)
class FoundCause:
    """A cause that was found.

    `options`: alternatives, the best first. `passing`: only time helps, or nothing has to be done. `partial`: it keeps
    the pod from some nodes only, and another cause from the rest, so that removing one may be enough.
    """

    code: str
    message: str
    objects: Sequence[ObjectNamed] = ()
    fields: Sequence[str] = ()
    evidence: Sequence[str] = ()
    options: Sequence[RemedyOption] = ()
    certain: bool = True
    passing: bool = False
    partial: bool = False
    waits_for: Pod | None = None  # of another workload, whose cause is the cause

    def answer(self) -> CauseAnswer:
        message, evidence = cut(self.message), list(map(cut, self.evidence))
        return CauseAnswer(self.code, message, list(self.objects), list(self.fields), evidence, self.passing)


def named(obj: Object) -> ObjectNamed:
    return ObjectNamed(obj.kind.partition(".")[0], obj.namespace, obj.name)


def spec_edit(change: Callable[[dict[str, Any]], None]) -> Edit:
    """Return an edit of the pod's spec alone."""
    return lambda manifest, spec: change(spec)


def fewer_replicas(workload: ExaminedWorkload, replicas: int) -> list[RemedyOption]:
    """Return the option with this many replicas; none for 0, or for a workload without a number of replicas."""
    if not replicas or "replicas" not in workload.spec:
        return []

    def edit(manifest: dict[str, Any], spec: dict[str, Any]) -> None:
        manifest["spec"]["replicas"] = replicas

    return [RemedyOption(counted(replicas, "replica"), edit=edit, less=True)]
