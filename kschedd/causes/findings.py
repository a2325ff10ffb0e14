"""The results of a search for causes: a cause, and options. Each option is a change that a person might choose.

An option changes the workload's own manifest, or carries out other steps. Options of several causes may be carried out
together. The functions of this module do not change the cluster: `remedies` turns options into commands and tries them.
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

#: kinds of remedies, in order of preference
CHANGE_WORKLOAD: Final = "change-workload"
REPLACE_WORKLOAD: Final = "replace-workload"  # for a workload whose template is immutable
REPLACE_POD: Final = "replace-pod"  # for a pod whose controller will create another
REPLACE_OBJECT: Final = "replace-object"  # for an object whose field is immutable, such as a claim's class
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
    """`summary` completes "remedy:", for example `use node-pool=general`."""

    summary: str
    kind: str = CHANGE_WORKLOAD
    edit: Edit | None = None
    steps: Sequence[RemedyStep] = ()
    target: str = ""  # "": the workload
    after: Sequence[RemedyStep] = ()  # steps to carry out after the change of the workload
    less: bool = False  # true if the workload would get less than intended, so that other options are preferred


@attrs.frozen(eq=False)
class FoundCause:
    """A cause that was found.

    `options` are alternatives, the best one first. `passing` is true if only time helps, or if nothing needs to be
    done. `partial` is true if the cause excludes only some nodes, and other causes exclude the remaining nodes.
    If each cause excludes only some nodes, removing one cause may be enough.
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
    waits_for: Pod | None = None  # pod of another workload, which has the actual cause

    def answer(self) -> CauseAnswer:
        message, evidence = cut(self.message), list(map(cut, self.evidence))
        return CauseAnswer(self.code, message, list(self.objects), list(self.fields), evidence, self.passing)


def named(obj: Object) -> ObjectNamed:
    return ObjectNamed(obj.kind.partition(".")[0], obj.namespace, obj.name)


def spec_edit(change: Callable[[dict[str, Any]], None]) -> Edit:
    """Return an edit that changes only the pod's spec."""
    return lambda manifest, spec: change(spec)


def fewer_replicas(workload: ExaminedWorkload, replicas: int) -> list[RemedyOption]:
    """Return the option with this number of replicas, or none if it is 0 or if the workload has no replica count."""
    if not replicas or "replicas" not in workload.spec:
        return []

    def edit(manifest: dict[str, Any], spec: dict[str, Any]) -> None:
        manifest["spec"]["replicas"] = replicas

    return [RemedyOption(counted(replicas, "replica"), edit=edit, less=True)]
