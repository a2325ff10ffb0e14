"""The log of a container: the text in an annotation of its pod, and with `follow` the lines that are added to it.

A followed log ends when its container ends, when the pod is deleted, or when the cluster shuts down. All lines present
at the start of the request date from the start of the container; later lines from the change of the annotation.

Source: Kubernetes v1.37, pkg/registry/core/pod/rest/log.go, pkg/kubelet/kuberuntime/logs/logs.go,
pkg/apis/core/validation/validation.go (ValidatePodLogOptions).
"""

from collections.abc import Iterable, Sequence
from typing import Final

import attrs
import trio

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.fields import FieldError, forbidden, invalid
from kschedd.api.simulation.annotations import log_text
from kschedd.api.text.times import SECOND, micro_stamp, micros
from kschedd.apiserver.codec.negotiation import text_response
from kschedd.apiserver.codec.status import StatusError, bad_request, invalid_options
from kschedd.apiserver.handlers.reading import find
from kschedd.apiserver.requests import ApiCall, Query
from kschedd.apiserver.services import FaceServices
from kschedd.http.server import HttpResponse, Send
from kschedd.store.cluster_api import ClusterWatch
from kschedd.store.errors import Gone
from kschedd.store.objects.log import DELETED, WatchEvent

_PULLING: Final = frozenset(("ErrImagePull", "ImagePullBackOff"))
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_EVENTS: Final = 50  # number of events examined together
_PIECE: Final = 32 << 10  # bytes sent together
_HEADERS: Final = (("Content-Type", "text/plain"), ("Cache-Control", "no-cache, private"))


def container_of(call: ApiCall, pod: Pod) -> str:
    """Return the requested container.

    Raises StatusError if the container does not exist, or if no container is named and there are several.
    """
    names = [
        str(each.get("name", ""))
        for field in ("containers", "initContainers", "ephemeralContainers")
        for each in pod.spec.get(field) or ()
    ]
    wanted = call.query.text("container")
    if wanted:
        if wanted not in names:
            raise bad_request(f"container {wanted} is not valid for pod {pod.name}")
        return wanted
    own = [str(each.get("name", "")) for each in pod.spec.get("containers") or ()]
    if len(own) == 1:
        return own[0]
    raise bad_request(f"a container name must be specified for pod {pod.name}, choose one of: [{' '.join(own)}]")


async def serve_log(face: FaceServices, call: ApiCall) -> HttpResponse:
    options = _LogOptions.of(call.query, call.target.name, face.now())
    pod = await find(face, call)
    assert isinstance(pod, Pod), "only pods have a log"
    container = container_of(call, pod)
    if not pod.node_name:
        return HttpResponse(204, (("Cache-Control", "no-cache, private"),))
    if not face.kubelets:
        query = "&".join(f"{name}={value}" for name, value in call.query.items() if name != "container")
        path = f"containerLogs/{pod.namespace}/{pod.name}/{container}" + (f"?{query}" if query else "")
        why = f"dial tcp: lookup {pod.node_name}: no such host"
        raise StatusError(500, "", f'Get "https://{pod.node_name}:10250/{path}": {why}')
    entry = _status(pod, container)
    _check_started(call, pod, container, entry)
    log = _Log(options, container)
    first = log.first(pod, entry)
    if not call.query.flag("follow") or call.query.flag("previous") or not _is_running(entry):
        return text_response(b"".join(first).decode(errors="replace"))
    return HttpResponse(200, _HEADERS, stream=_Following(face, call, pod, log, first).run)


def _status(pod: Pod, container: str) -> Raw:
    """Return the status of the container; empty if the pod's status has none."""
    for field in _STATUSES:
        for entry in pod.status.get(field) or ():
            if entry.get("name") == container:
                found: Raw = entry
                return found
    return {}


def _check_started(call: ApiCall, pod: Pod, container: str, entry: Raw) -> None:
    """Raise StatusError if the container, or with `previous` an earlier run of it, has not started."""
    ended = (entry.get("lastState") or {}).get("terminated")
    if call.query.flag("previous"):
        if not ended:
            raise bad_request(f'previous terminated container "{container}" in pod "{pod.name}" not found')
    elif (waiting := (entry.get("state") or {}).get("waiting")) and not ended:
        reason = waiting.get("reason") or ""
        why = "trying and failing to pull image" if reason in _PULLING else reason
        raise bad_request(f'container "{container}" in pod "{pod.name}" is waiting to start: {why}')


def _is_running(entry: Raw) -> bool:
    return (entry.get("state") or {}).get("running") is not None


def _started(entry: Raw) -> int:
    """Return the start of the container in microseconds; 0 if it is unknown."""
    state = entry.get("state") or {}
    started = (state.get("running") or state.get("terminated") or {}).get("startedAt")
    return micros(started) if started else 0


def _given_time(text: str) -> int:
    """Return the value of `sinceTime`; 0 for "". Raises StatusError."""
    try:
        return micros(text) if text else 0
    except ValueError:
        layout = "2006-01-02T15:04:05Z07:00"
        raise bad_request(f'parsing time "{text[:100]}" as "{layout}": cannot parse "{text[:100]}" as "2006"') from None


@attrs.frozen
class _LogOptions:
    """The options of a request for a log; None means no limit. Times are in microseconds."""

    tail: int | None
    limit: int | None
    since: int
    timestamps: bool

    @classmethod
    def of(cls, query: Query, name: str, now: float) -> "_LogOptions":
        """Return the options in the query. Raises StatusError."""
        tail, limit, age = (query.integer(field) for field in ("tailLines", "limitBytes", "sinceSeconds"))
        since = query.text("sinceTime")
        faults: list[FieldError] = []
        if tail is not None and tail < 0:
            faults.append(invalid("tailLines", tail, "must be greater than or equal to 0"))
        if limit is not None and limit < 1:
            faults.append(invalid("limitBytes", limit, "must be greater than 0"))
        if age is not None and since:
            faults.append(forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
        elif age is not None and age < 1:
            faults.append(invalid("sinceSeconds", age, "must be greater than 0"))
        if faults:
            raise invalid_options("PodLogOptions", faults, name, group="")
        start = _given_time(since) if age is None else int((now - age) * SECOND)
        return cls(tail, limit, start, query.flag("timestamps"))


class _Log:
    """The lines of a container that a request has not returned yet."""

    def __init__(self, options: _LogOptions, container: str) -> None:
        self._options = options
        self._container = container
        self._returned: Sequence[str] = ()
        self._remaining = options.limit

    @property
    def full(self) -> bool:
        """True if the limit of bytes is reached."""
        return self._remaining == 0

    def first(self, pod: Pod, entry: Raw) -> list[bytes]:
        """Return the lines at the start of the request."""
        self._returned = lines = self._lines(pod)
        tail = self._options.tail
        return self._formatted(lines if tail is None else lines[max(0, len(lines) - tail) :], _started(entry))

    def added(self, pod: Pod, now: float) -> list[bytes]:
        """Return the lines that were added to the annotation, or all lines if it has another text."""
        before, self._returned = self._returned, self._lines(pod)
        new = self._returned[len(before) :] if self._returned[: len(before)] == before else self._returned
        return self._formatted(new, int(now * SECOND))

    def _lines(self, pod: Pod) -> Sequence[str]:
        return log_text(pod.annotations, self._container).splitlines()

    def _formatted(self, lines: Iterable[str], moment: int) -> list[bytes]:
        if moment < self._options.since:
            return []
        start = f"{micro_stamp(moment)[:-1]}000Z " if self._options.timestamps else ""
        formatted = []
        for line in lines:
            data = f"{start}{line}\n".encode()
            if self._remaining is not None:
                data = data[: self._remaining]
                self._remaining -= len(data)
            formatted.append(data)
            if self.full:
                break
        return formatted


class _Following:
    """A followed log of one client."""

    def __init__(self, face: FaceServices, call: ApiCall, pod: Pod, log: _Log, first: list[bytes]) -> None:
        self._face = face
        self._pod = pod
        self._call = call
        self._log = log
        self._first = first
        self._container = container_of(call, pod)
        self._restarts = _status(pod, self._container).get("restartCount") or 0

    async def run(self, send: Send) -> None:
        await send(b"")  # send the headers, so that the client notices that the log is open
        await _send_lines(send, self._first)
        watch = await self._face.cluster.store.watch({"Pod"})
        try:
            pod: Object | None = await self._face.cluster.store.do(
                lambda store: store.find("Pod", self._pod.namespace, self._pod.name)
            )
            while self._goes_on(pod):
                assert isinstance(pod, Pod), "checked by `_goes_on`"
                await _send_lines(send, self._log.added(pod, self._face.now()))
                if self._log.full:
                    return
                pod = await self._changed(watch)
        except Gone:  # more writes than the log holds, while the client did not read
            return
        finally:
            watch.close()

    def _concerns(self, event: WatchEvent) -> bool:
        return event.new.name == self._pod.name and event.new.namespace == self._pod.namespace

    async def _changed(self, watch: ClusterWatch) -> Object | None:
        """Return the pod after its next changes; None if it was deleted or the cluster shuts down. Raises Gone."""
        while True:
            while watch.behind:
                latest = [event for event in watch.take(_EVENTS) if self._concerns(event)][-1:]
                if latest:
                    return None if latest[0].type == DELETED else latest[0].new
                await trio.lowlevel.checkpoint()
            if not await watch.wait():
                return None

    def _goes_on(self, pod: Object | None) -> bool:
        """Return whether this is the same pod, and the same run of its container goes on."""
        if not isinstance(pod, Pod) or pod.uid != self._pod.uid:
            return False
        entry = _status(pod, self._container)
        return _is_running(entry) and (entry.get("restartCount") or 0) == self._restarts


async def _send_lines(send: Send, lines: Iterable[bytes]) -> None:
    waiting: list[bytes] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size > _PIECE:
            await send(b"".join(waiting))
            waiting, size = [], 0
    if waiting:
        await send(b"".join(waiting))
