"""What all requests of the face share: the cluster, its clock, fair slots and slices, and remembered encodings."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import attrs

from kschedd.access.users import Caller
from kschedd.api.objects import Object
from kschedd.apiserver.encoding import Encoder
from kschedd.apiserver.tokens import Tokens
from kschedd.apiserver.version import OF_DEFAULT, ServedVersion
from kschedd.apiserver.watch_groups import WatchGroups
from kschedd.service.cluster import ClusterBackend
from kschedd.service.objects.events import as_object
from kschedd.service.table import Call, Method
from kschedd.service.turns import FairLimiter, Turns
from kschedd.service.workers import WorkerPool
from kschedd.store.cluster_api import ClusterReader


@attrs.define(eq=False)
class FaceServices:
    """See the module. As a `ClientServices` it lets requests be worked on aside, as those of the socket are."""

    cluster: ClusterBackend
    served: ServedVersion = OF_DEFAULT
    kubelets: bool = True  # simulated here; else nobody can be asked for what a kubelet knows
    turns: Turns = attrs.field(factory=Turns)
    workers: WorkerPool = attrs.field(factory=WorkerPool)
    large: FairLimiter = attrs.field(factory=lambda: FairLimiter(4, share=1))
    encoder: Encoder = attrs.field(factory=Encoder)
    groups: WatchGroups = attrs.field(factory=WatchGroups)
    tokens: Tokens = attrs.field(init=False)
    methods: Mapping[str, Method] = attrs.field(factory=dict)
    identity: Mapping[str, Any] = attrs.field(factory=dict)
    caller: Caller = attrs.field(factory=Caller)

    def __attrs_post_init__(self) -> None:
        self.tokens = Tokens(self.now)

    def cancel_stream(self, stream_id: int) -> bool:
        return False

    def at_end(self, name: str, do: Callable[[], Awaitable[None]]) -> None:
        raise AssertionError("a request over HTTP has no session of the socket")

    def now(self) -> float:
        return self.cluster.clock.now()

    def call(self, what: str, client: str, size: int) -> Call:
        """The call of a method that a request amounts to; `size` where it is large."""
        return Call(what, {}, client, self, _no_stream, size)

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


def _no_stream(feed: Callable[..., Any]) -> int:
    raise AssertionError("a request over HTTP opens no stream of the socket")
