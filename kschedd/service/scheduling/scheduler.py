"""Methods for the scheduler: status, configuration, decisions and explanations."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import attrs
import trio

from kschedd.answers import ABSENT
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.config.changing.changes import with_weight
from kschedd.config.model import Config, Profile
from kschedd.explain.answers import DecisionAnswer, Explanation, GroupExplanation
from kschedd.explain.explain import begin, finish, no_longer_kept, of_past
from kschedd.explain.past import Past
from kschedd.explain.pod_group import begin_group, explain_group
from kschedd.explain.summary import MOST_SCORED, summarized
from kschedd.log.log import Log
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import ChangeConfig
from kschedd.scheduling.records import AttemptRecord
from kschedd.scheduling.stops.view import stopped_at
from kschedd.service.cluster import ClusterBackend, Queue
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.scheduling.answers import ConfigAnswer, PluginOfPoint, ProfileAnswer, StatusAnswer, WeightAnswer
from kschedd.service.table import Call, Methods, Stream, StreamAnswer, method
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import Gone

_SHORTEST_S, _LONGEST_S = 0.05, 3600


@attrs.frozen(eq=False)
class SchedulerMethods(Methods):
    _cluster: ClusterBackend
    _daemon: DaemonState

    @method("scheduler.status", reads=True, doc="Returns the status of the scheduler.", answer=StatusAnswer)
    async def status(self, call: Call) -> Any:
        return await self._status()

    async def _status(self) -> StatusAnswer:
        cluster = self._cluster
        now = cluster.clock.now()
        queue, (seen, stopped), decided = await cluster.query_in_turn(
            _queue_counts, lambda owner: (_seen(owner), stopped_at(owner)), lambda log: _decided(log, now)
        )
        clock = cluster.clock
        return StatusAnswer(
            **queue,
            **seen,
            **decided,
            paused=stopped is not None,
            stopped_at=stopped,
            speed=clock.speed,
            virtual_time=stamp(now) if clock.is_virtual else None,
            ahead_s=clock.ahead_s,
        )

    @method(
        "scheduler.watch",
        (Param("interval_s", "number", False, 0.5, f"interval, at least {_SHORTEST_S}", (), 0, _LONGEST_S),),
        reads=True,
        doc=(
            "Sends the status at each change. There is no position to resume from: each item is the whole status. "
            "After a break, call this method again."
        ),
        answer=StreamAnswer,
        item=StatusAnswer,
    )
    async def watch(self, call: Call) -> Any:
        interval = max(float(call["interval_s"]), _SHORTEST_S)

        async def feed(stream: Stream) -> None:
            last: StatusAnswer | None = None
            while True:
                status = await self._status()
                if status != last:
                    await stream.send(status)
                    last = status
                await trio.sleep(interval)

        return StreamAnswer(call.open_stream(feed))

    @method("scheduler.config", reads=True, doc="Returns the configuration in effect.", answer=ConfigAnswer)
    async def config(self, call: Call) -> Any:
        return described(await self._cluster.scheduler.query(lambda owner: owner.machine.config))

    @method(
        "scheduler.set_weight",
        (
            Param("profile", "string", doc="schedulerName of the profile"),
            Param("plugin", "string", doc="a score plugin"),
            Param("weight", "integer", doc="1 or more"),
        ),
        doc="Changes the weight of a plugin's score; the change applies from the next attempt on.",
        answer=WeightAnswer,
    )
    async def set_weight(self, call: Call) -> Any:
        name, plugin, weight = call["profile"], call["plugin"], call["weight"]

        now = self._cluster.clock.now()

        def change(owner: SchedulingDriver) -> Any:
            config = with_weight(owner.machine.config, name, plugin, weight)
            before = owner.step(ChangeConfig(config, f"weight {plugin} {weight} in {name}"), now).before
            profile = before.profile(name)
            return WeightAnswer(0 if profile is None else profile.weight(plugin), weight)

        return await self._cluster.scheduler.query(change)

    @method(
        "scheduler.decisions",
        (
            Param("pod", "string", False, doc="only decisions about `namespace/name`"),
            Param("namespace", "string", False, doc="without `pod`: only decisions about pods of this namespace"),
            Param("limit", "integer", False, 100, "maximum number; the latest are returned", minimum=0, maximum=100000),
        ),
        reads=True,
        doc="Lists the latest attempts, the newest last.",
        answer=Sequence[DecisionAnswer],
    )
    async def decisions(self, call: Call) -> Any:
        found = await self._cluster.log.query(lambda log: log.attempts(call["pod"], call["limit"], call["namespace"]))
        return [_decision(decision) for decision in found]

    @method(
        "scheduler.explain",
        (
            Param("pod", "string|map", doc="`namespace/name` of an existing or deleted pod, or a pod's manifest"),
            Param("attempt", "integer", False, doc="explain the pod's attempt with this number", minimum=1),
            Param(
                "summary",
                "boolean",
                False,
                False,
                f"count the nodes in `funnel` instead of listing `verdicts`, and return the {MOST_SCORED} best scores",
            ),
        ),
        reads=True,
        doc="Explains by node and plugin why a pod has its node or has no node, in the present state or at the time "
        "of an attempt; a deleted pod is explained by its last attempt. Nothing is changed. A manifest is evaluated "
        "as if its pod had just been created. An existing pod with the same name stays in the cluster.",
        answer=Explanation,
    )
    async def explain(self, call: Call) -> Any:
        found = await self._explain(call)
        return summarized(found) if call["summary"] else found

    async def _explain(self, call: Call) -> Explanation:
        wanted, number = call["pod"], call["attempt"]
        if isinstance(wanted, str):
            namespace, slash, name = wanted.rpartition("/")
            key = f"{namespace if slash else 'default'}/{name}"
            pod = await self._cluster.store.do(lambda store: store.find("Pod", *key.split("/", 1)))
            if pod is None or number is not None:
                return await self._explain_attempt(call, key, number, exists=pod is not None)
        else:
            pod = await self._cluster.store.do(lambda store: _admitted(wanted, store))
        assert isinstance(pod, Pod)
        recorded = await self._cluster.log.query(lambda log: log.attempts(pod.key, 1))
        of_this = [_decision(decision) for decision in recorded if decision.uid == pod.uid]
        attempt = of_this[0] if of_this else None
        fork = await self._cluster.scheduler.query(lambda owner: begin(owner.machine, pod, owner.nominator.by_node()))
        # The fork is independent, so other requests are served meanwhile, and the client may disconnect.
        found = await call.services.workers.run(
            call.client, lambda given_up: finish(fork, recorded=attempt, clock=perf_counter)
        )
        if self._daemon.mirror is not None and (releases := self._daemon.mirror().other_release):
            found.notes.append(releases)
        return found

    @method(
        "scheduler.explain_group",
        (Param("pod_group", "string", doc="`namespace/name` of a PodGroup that exists or to which pods refer"),),
        reads=True,
        doc="Explains what the next cycle of a PodGroup would decide about each of its pods. Nothing is changed.",
        answer=GroupExplanation,
    )
    async def explain_group(self, call: Call) -> Any:
        namespace, slash, name = str(call["pod_group"]).rpartition("/")
        key = f"{namespace if slash else 'default'}/{name}"
        config = await self._cluster.scheduler.query(lambda owner: owner.machine.config)
        if not config.rules.pod_groups:
            by = f"kube-scheduler {config.version.name} without the feature gate GenericWorkload"
            raise RpcError("invalid", f"{by} tries the pods of a PodGroup one by one: explain each by itself")
        fork = await self._cluster.scheduler.query(lambda owner: begin_group(owner.machine, owner.nominator, key))
        if fork is None:
            raise RpcError("not_found", f'podgroups.scheduling.k8s.io "{name}" not found, and no pod names it')
        return await call.services.workers.run(call.client, lambda given_up: explain_group(fork))

    async def _explain_attempt(self, call: Call, key: str, number: int | None, *, exists: bool) -> Explanation:
        """Explain a past attempt; without a number, the last attempt. `exists` is true if the pod still exists."""
        kept = await self._cluster.log.query(Log.attempts)
        mine = [place for place, r in enumerate(kept) if r.pod == key and r.attempted is not None and not r.of_binding]
        found_places = [place for place in mine if number in (None, kept[place].attempt)]
        if not found_places:
            raise RpcError("not_found", _no_attempt(key, number, [kept[place] for place in mine], kept, exists))
        record, before = kept[found_places[-1]], kept[: found_places[-1]]
        pod, decision = record.attempted, _decision(record)
        assert pod is not None, "chosen for having it"
        try:
            fork, observed = await self._cluster.scheduler.query(
                lambda owner: (begin(owner.machine, pod, owner.nominator.by_node()), owner.observer.version)
            )
            since = await self._cluster.store.do(lambda store: store.shown_after(record.version))
        except Gone as gone:
            return no_longer_kept(record, decision, str(gone))
        past = Past(record, before, since)
        return await call.services.workers.run(
            call.client,
            lambda given_up: finish(of_past(fork, past, observed), recorded=decision, clock=perf_counter),
        )


def _no_attempt(
    key: str, number: int | None, mine: Sequence[AttemptRecord], kept: Sequence[AttemptRecord], exists: bool
) -> str:
    name = key.partition("/")[2]
    if not mine:
        if exists:
            since = f"; the record of attempts has the latest {len(kept)}" if kept else ""
            return f"no attempt of pod {key} is recorded, because the record begins with the daemon{since}"
        among = f", nor in the record of attempts (the latest {len(kept)})" if kept else ""
        return f'pods "{name}" not found{among}'
    known = ", ".join(str(record.attempt) for record in mine)
    return f"attempt {number} of pod {key} is not known; known are {known}"


def _admitted(raw: Mapping[str, Any], store: ClusterWriter) -> Pod:
    """Return the pod as it would be stored.

    Raises the errors that creating the pod would raise.
    """
    if raw.get("kind", "Pod") != "Pod":
        raise RpcError("invalid", f"pod: a {raw['kind']} is not a Pod; a name or a Pod's manifest is expected")
    meta = raw.get("metadata")
    named = {**(meta if isinstance(meta, Mapping) else {})}
    if not named.get("name") and not named.get("generateName"):
        named["generateName"] = "explained-"
    space = str(named.get("namespace") or "default")
    if store.find("Pod", space, str(named.get("name") or "")) is not None:
        # The new name avoids a conflict with an existing pod of this name.
        named["generateName"] = f"{named.pop('name')}-"
    made = store.create({"apiVersion": "v1", "kind": "Pod", **raw, "metadata": named}, dry_run=True)
    assert isinstance(made, Pod)
    return made


def _queue_counts(owner: Queue) -> dict[str, int]:
    return {place.value: count for place, count in owner.queue.counts().items()}


def _seen(owner: SchedulingDriver) -> dict[str, int]:
    cluster = owner.machine.cluster
    return {
        "waiting": len(owner.machine.waiting.pods),
        "binding": len(owner.bindings.cycles),
        "scheduled": owner.bindings.pods_bound,
        "nodes": cluster.table.node_count,
        "pods": cluster.pod_count,
    }


def _decided(log: Log, now: float) -> dict[str, Any]:
    return {
        "failed_attempts": log.failed,
        "decisions_per_s": round(log.rate(now), 1),
        "last_decisions": [_decision(decision) for decision in log.attempts(None, 5)],
    }


def _decision(decision: AttemptRecord) -> DecisionAnswer:
    return DecisionAnswer(
        stamp(decision.at_s),
        decision.pod,
        decision.node or None,
        decision.attempt,
        decision.feasible,
        decision.visited,
        decision.ties,
        decision.score,
        decision.message,
        decision.nominated_node,
        round(decision.took_s * 1e6),
    )


def described(config: Config) -> ConfigAnswer:
    return ConfigAnswer(
        [_profile(profile) for profile in config.profiles],
        config.percentage_of_nodes_to_score,
        config.pod_initial_backoff_s,
        config.pod_max_backoff_s,
        config.parallelism,
        dict(config.feature_gates),
    )


def _profile(profile: Profile) -> ProfileAnswer:
    plugins = {
        point: [PluginOfPoint(ref.name, ref.weight if point == "score" else ABSENT) for ref in refs]
        for point, refs in profile.plugins.items()
    }
    args = {name: _plain(args) for name, args in profile.plugin_args.items()}
    return ProfileAnswer(profile.scheduler_name, profile.percentage_of_nodes_to_score, plugins, args)


def _plain(value: Any) -> Any:
    if attrs.has(type(value)):
        return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
