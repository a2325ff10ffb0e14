"""What the methods over the process, its plugins and its files answer."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import attrs

from kschedd.live.answers import LeaderAnswer, MirrorAnswer
from kschedd.object_faults import ObjectFault
from kschedd.recording.recorder import RecordingState
from kschedd.scheduling.config_changes import ChangedValue

Text = Annotated[str, "text"]
Name = Annotated[str, "name"]


# -- daemon.info ------------------------------------------------------------------------------------------------


@attrs.frozen
class ObjectFaultAnswer:
    kind: str
    namespace: str
    name: str
    component: Annotated[str, "what part of the daemon raised it"]
    why: str
    count: int
    first_s: float
    last_s: float
    retry_s: Annotated[float | None, "when it tries again (seconds since the epoch; null: at the next start)"]

    @classmethod
    def of(cls, fault: ObjectFault) -> "ObjectFaultAnswer":
        ref, times = fault.ref, (fault.first_s, fault.last_s, fault.retry_s)
        return cls(ref.kind, ref.namespace, ref.name, fault.component, fault.why, fault.count, *times)


@attrs.frozen
class PluginCallsAnswer:
    name: str
    call: Annotated[str, "the method or verb"]
    calls: Annotated[int, "since the start, as are the other counts"]
    p50_ms: Annotated[float | None, "of the last 1,000 calls, as are the other quantiles"]
    p99_ms: float | None
    longest_ms: float | None
    timeouts: int
    failures: int


@attrs.frozen
class InfoLimits:
    max_request_body_bytes: int
    max_object_bytes: int


@attrs.frozen(kw_only=True)
class InfoAnswer:
    version: str
    pid: int
    socket: str
    uptime_s: float
    seed: int
    speed: float
    profiles: Sequence[Name]
    objects: Mapping[Annotated[str, "kind"], Annotated[int, "count"]]
    resource_version: int
    epoch: Annotated[str, "the history that versions count in"]
    journal: Annotated[str | None, "its file, null if objects are kept in memory only"]
    read_only: Annotated[
        str | None, "why the journal cannot be written now, so that writes are refused, null if it can"
    ]
    mirror: Annotated[
        MirrorAnswer | None, "the real cluster whose objects are held here; null for a cluster of its own"
    ]
    leader: Annotated[LeaderAnswer | None, "null where no real cluster is scheduled from here"]
    recording: Annotated[RecordingState | None, "what was written of this run's recording"]
    faults: Annotated[Sequence[ObjectFaultAnswer], "the objects that cannot be handled now"]
    plugins: Annotated[Sequence[PluginCallsAnswer], "the calls of out-of-tree plugins and of extenders"]
    limits: InfoLimits


# -- the process ------------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class ClientAnswer:
    number: int
    user: str
    groups: Sequence[Annotated[str, "group"]]
    read_only: bool
    pid: Annotated[int | None, "what the system says of a client on the Unix socket, else null"]
    uid: Annotated[int | None, "the same"]
    address: Annotated[str | None, "of one on TCP, else null"]
    connected_s: float
    idle_s: Annotated[float | None, "null while it has requests or streams, or answers that it has not read"]
    requests: int
    streams: int
    waiting_bytes: int


@attrs.frozen
class LimitAnswer:
    name: str
    what: str
    unit: Annotated[str, "`bytes`, `s` or empty"]
    limit: int
    default: int
    used: Annotated[
        int | None,
        "how much is in use now (of one client, process or connection, where the bound is for one); null where the "
        "daemon has no such part",
    ]
    most: Annotated[int | None, "the most that there has been since the start"]
    reached: Annotated[str, "what happens where there is no more"]


@attrs.frozen
class StoppingAnswer:
    stopping: Annotated[bool, "true"] = True


@attrs.frozen
class StackAnswer:
    thread: str
    frames: Annotated[
        Sequence[Annotated[str, "frame"]],
        "`module:function` from the outside in, those of the event loop from the task's own function on, which names "
        "the actor; a thread that waits is `(idle)`",
    ]
    count: Annotated[int, "how often it was seen"]


@attrs.frozen
class ProfiledAnswer:
    seconds: float
    looks: int
    stacks: Annotated[Sequence[StackAnswer], "the most frequent first"]


# -- plugins, metrics, dumps, reports ---------------------------------------------------------------------------


@attrs.frozen
class PluginAnswer:
    name: str
    source: str
    points: Sequence[Annotated[str, "point"]]
    profiles: Sequence[Name]


@attrs.frozen
class TextAnswer:
    text: str


@attrs.frozen
class PageAnswer:
    page: Annotated[str, "HTML that loads nothing"]


@attrs.frozen
class LoadedAnswer:
    loaded: Annotated[str, "what was taken"]
    applied: Annotated[int, "how many manifests were applied"]
    in_the_way: Annotated[Sequence[Text], "objects here that have the name of one in the dump, and stayed"]
    errors: Annotated[Sequence[Text], "a hundred, and how many more there are"]
    assumptions: Annotated[Sequence[Text], "what was assumed, dropped and made up"]


@attrs.frozen
class SnapshotAnswer:
    resource_version: int
    epoch: str
    objects: Sequence[Annotated[Any, "object"]]


# -- the configuration ------------------------------------------------------------------------------------------


@attrs.frozen
class ConfigChangeAnswer:
    number: int
    time: str
    what: str
    values: Sequence[ChangedValue]
