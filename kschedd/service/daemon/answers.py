"""Answers of the methods on the process, its plugins and its files."""

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
    component: Annotated[str, "part of the daemon that reports it"]
    why: str
    count: int
    first_s: float
    last_s: float
    retry_s: Annotated[float | None, "time of the next retry (seconds since the epoch; null: at the next start)"]

    @classmethod
    def of(cls, fault: ObjectFault) -> "ObjectFaultAnswer":
        ref, times = fault.ref, (fault.first_s, fault.last_s, fault.retry_s)
        return cls(ref.kind, ref.namespace, ref.name, fault.component, fault.why, fault.count, *times)


@attrs.frozen
class PluginCallsAnswer:
    name: str
    call: Annotated[str, "method or verb"]
    calls: Annotated[int, "since the start, like the other counts"]
    p50_ms: Annotated[float | None, "of the last 1,000 calls, like the other quantiles"]
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
    kubernetes: Annotated[str, "the release of kube-scheduler whose decisions are made, such as v1.37.2"]
    seed: int
    speed: float
    profiles: Sequence[Name]
    objects: Mapping[Annotated[str, "kind"], Annotated[int, "count"]]
    resource_version: int
    epoch: Annotated[str, "the history to which resource versions belong"]
    journal: Annotated[str | None, "its file, null if objects are in memory only"]
    read_only: Annotated[
        str | None, "why the journal cannot be written now, so that writes are rejected, null if it can"
    ]
    mirror: Annotated[MirrorAnswer | None, "the mirrored real cluster; null without one"]
    leader: Annotated[LeaderAnswer | None, "null unless a real cluster is scheduled from here"]
    recording: Annotated[RecordingState | None, "progress of this run's recording"]
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
    pid: Annotated[int | None, "from the operating system for a client on the Unix socket, else null"]
    uid: Annotated[int | None, "the same"]
    address: Annotated[str | None, "for a client on TCP, else null"]
    connected_s: float
    idle_s: Annotated[float | None, "null while it has requests, streams or unread answers"]
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
        "the amount in use now (of one client, process or connection, if the limit is per client, process or "
        "connection); null if the daemon has no such part",
    ]
    most: Annotated[int | None, "the maximum since the start"]
    reached: Annotated[str, "what happens at the limit"]


@attrs.frozen
class StoppingAnswer:
    stopping: Annotated[bool, "true"] = True


@attrs.frozen
class StackAnswer:
    thread: str
    frames: Annotated[
        Sequence[Annotated[str, "frame"]],
        "`module:function`, outermost first; for the event loop from the task's own function on, which names the "
        "actor; `(idle)` for a waiting thread",
    ]
    count: Annotated[int, "number of samples"]


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
class PageLinkAnswer:
    url: str


@attrs.frozen
class PageAnswer:
    page: Annotated[str, "HTML without external resources"]


@attrs.frozen
class LoadedAnswer:
    loaded: Annotated[str, "what was loaded"]
    applied: Annotated[int, "number of applied manifests"]
    in_the_way: Annotated[
        Sequence[Text], "existing objects that kept their name, so that those in the dump were skipped"
    ]
    errors: Annotated[Sequence[Text], "at most 100, and the number of further ones"]
    assumptions: Annotated[Sequence[Text], "what was assumed, dropped or added"]


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
