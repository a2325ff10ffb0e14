"""What all requests of the face share: the cluster, its clock, fair slots and slices, and remembered encodings."""

from collections.abc import Sequence
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.apiserver.encoding import Encoder
from kschedd.apiserver.requests import Asked
from kschedd.apiserver.tokens import Tokens
from kschedd.apiserver.version import OF_DEFAULT, ServedVersion
from kschedd.apiserver.watch_groups import WatchGroups
from kschedd.service.cluster import ClusterBackend
from kschedd.service.execution import Executor
from kschedd.service.objects.events import as_object
from kschedd.service.turns import FairLimiter, Turns
from kschedd.service.workers import WorkerPool
from kschedd.store.cluster_api import ClusterReader

LARGE_BODY: Final = 64 << 10  # bytes: such a request is worked on beside the loop


@attrs.define(eq=False)
class FaceServices:
    """See the module."""

    cluster: ClusterBackend
    served: ServedVersion = OF_DEFAULT
    kubelets: bool = True  # simulated here; else nobody can be asked for what a kubelet knows
    turns: Turns = attrs.field(factory=Turns)
    workers: WorkerPool = attrs.field(factory=WorkerPool)
    large: FairLimiter = attrs.field(factory=lambda: FairLimiter(4, share=1))
    encoder: Encoder = attrs.field(factory=Encoder)
    groups: WatchGroups = attrs.field(factory=WatchGroups)
    tokens: Tokens = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tokens = Tokens(self.now)

    def now(self) -> float:
        return self.cluster.clock.now()

    def executor(self, asked: Asked) -> Executor:
        """Where the requests of a client are executed."""
        large = len(asked.http.body) > LARGE_BODY
        return Executor(self.cluster, self.workers, asked.client, asked.target.verb, asked.user, large)

    async def recorded_events(self, namespace: str | None) -> list[Sequence[Object]]:
        """The scheduler's events, which are kept in memory, as objects."""
        told = await self.cluster.events.query(lambda record: record.latest(namespace))
        if not told:
            return []
        events = [as_object(each) for each in told]
        about = [(event["involvedObject"]["namespace"], event["involvedObject"]["name"]) for event in events]
        uids = await self.cluster.store.do(lambda store: _uids(store, about))
        for event, uid in zip(events, uids, strict=True):
            if uid:
                event["involvedObject"]["uid"] = uid  # by which `describe` asks for the events of an object
        return [[Object.from_raw(event) for event in events]]


def _uids(store: ClusterReader, pods: Sequence[tuple[str, str]]) -> list[str]:
    """The uid of each of these pods; "" of one that is gone."""
    found = (store.find("Pod", namespace, name) for namespace, name in pods)
    return ["" if pod is None else pod.uid for pod in found]
