"""Answers of methods about a real cluster that this daemon mirrors, or whose pods it schedules."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import attrs

from kschedd.config.versions.kube_versions import minor_of


@attrs.frozen
class UnreadKind:
    """A kind that the mirror does not contain, because the API server does not permit its user to read it."""

    resource: Annotated[str, "plural name, such as `nodes`"]
    kind: str
    affects: Annotated[str, "the answers that cannot be trusted without these objects"]


@attrs.frozen
class LeftOutObject:
    """An object that the mirror does not contain, because it is invalid in the release whose rules apply."""

    kind: str
    namespace: str
    name: str
    why: str
    affects: Annotated[str, "the answers that cannot be trusted without this object"]


@attrs.frozen
class MirrorAnswer:
    server: str
    context: str
    unheard_s: Annotated[float | None, "seconds since the last data from the API server"]
    unreachable: Annotated[str | None, "why the API server cannot be reached, null if it can"]
    release: Annotated[str, "version of the API server, such as `v1.36.2` (empty: unknown)"] = ""
    rules: Annotated[str, "Kubernetes version whose rules decide here, such as `1.36.3`"] = ""
    unread: Annotated[Sequence[UnreadKind], "kinds without permission to list or watch"] = ()
    left_out: Annotated[Sequence[LeftOutObject], "objects that cannot be stored (at most 1,000)"] = ()

    @property
    def other_release(self) -> str:
        """The releases of the server and of the rules, as a sentence; "" if they differ at most in the patch."""
        if not self.release or minor_of(self.release) == minor_of(self.rules):
            return ""
        return (
            f"the API server is of Kubernetes {self.release}, and the rules of {self.rules} decide here "
            "(--kube-version): placements and messages of the two releases may differ"
        )


@attrs.frozen
class LeaderAnswer:
    leads: Annotated[bool, "this daemon currently schedules that cluster"]
    lease: Annotated[str, "`namespace/name` of the Lease (empty: there is none)"]
    leader: Annotated[str, "the holder of the Lease"]


@attrs.frozen
class PluginCount:
    plugin: str
    result: str
    pods: int


@attrs.frozen
class OtherPlacement:
    """A pod that the mirrored cluster placed on another node than this daemon would."""

    at_s: Annotated[float, "time of the binding, in seconds since the epoch"]
    pod: Annotated[str, "namespace/name"]
    node: Annotated[str, "the pod's node in the mirrored cluster"]
    expected: Annotated[list[Annotated[str, "node"]], "the nodes that this daemon would choose, at most 5"]
    result: Annotated[
        str,
        "race (expected in another state of the last 2 s), partial search (possibly the search ended before the best "
        "node), lower score, rejected or unknown node",
    ]
    plugin: Annotated[str, "the plugin that rejects the node or has the largest difference in points, or empty"]
    why: str


@attrs.frozen(kw_only=True)
class AgreementAnswer:
    """The number of pods for which the mirrored cluster's schedulers and this daemon choose the same node."""

    since_s: Annotated[float, "start of the comparison, in seconds since the epoch"]
    bound: Annotated[int, "number of pods that were bound since then"]
    of_others: Annotated[int, "pods whose schedulerName has no profile here"]
    not_evaluated: Annotated[int, "pods that were bound faster than they can be evaluated, or cannot be evaluated"]
    results: Annotated[Mapping[str, Annotated[int, "pods"]], "evaluated pods by result; equal: the node is among ours"]
    plugins: Annotated[list[PluginCount], "differences by plugin, the most frequent first"]
    latest: Annotated[list[OtherPlacement], "the latest differences, at most 100, the oldest first"]
