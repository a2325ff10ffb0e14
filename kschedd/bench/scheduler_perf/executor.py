"""Execution of a test case, step by step, against a live cluster: store, queue and scheduler, each in its actor.

The same controllers run as in upstream's benchmark: the controllers of volumes and of resource claims. There are
no kubelets, so a pod deleted with a grace period is not removed; and there is no node lifecycle controller.

Churn and other steps for which no barrier waits continue in the background until the last step is done.

Source: Kubernetes v1.34, test/integration/scheduler_perf/scheduler_perf.go (runWorkload, executor).

Raises: PerfRunError; PerfConfigError for templates; ParameterError.
"""

import fnmatch
import random
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio

from kschedd.actors.cluster import LiveCluster
from kschedd.actors.full_collections import look_now_and_then
from kschedd.api.nodes import Node
from kschedd.api.objects import Object
from kschedd.api.schemas.kinds import Kind
from kschedd.bench.own_time import Clock
from kschedd.bench.pod_templates import namespace as namespace_object
from kschedd.bench.scheduler_perf.cases import PerfCase, PerfWorkload, parameters
from kschedd.bench.scheduler_perf.claims import allocated
from kschedd.bench.scheduler_perf.collectors import Collected, Collection, collected
from kschedd.bench.scheduler_perf.objects import any_object, in_namespace, namespaces, nodes, pods, resource_slice
from kschedd.bench.scheduler_perf.operations import (
    CHURN_RECREATE,
    STAGE_ATTEMPTED,
    AllocResourceClaims,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    CreateResourceClaims,
    CreateResourceDriver,
    DeletePods,
    Operation,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
    unrolled,
)
from kschedd.bench.scheduler_perf.perfdata import DEFAULT_COLLECTOR
from kschedd.bench.scheduler_perf.pod_tracker import PodTracker
from kschedd.bench.scheduler_perf.templates import TemplateFolder
from kschedd.bench.series import Raw
from kschedd.config.model import Config
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.storage.claims import ResourceClaims
from kschedd.controllers.storage.volumes import VolumeController
from kschedd.daemon import cluster_actors
from kschedd.devices.allocation.solution import AllocationError
from kschedd.devices.rules import DeviceRules
from kschedd.errors import KscheddError
from kschedd.garbage_collection import FullCollections
from kschedd.metrics.instruments import MetricFamily
from kschedd.plugins.devices.dynamicresources import device_rules
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.startup.state import StateOptions
from kschedd.store.admission.chain import Admission
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import AlreadyExists, ApiError
from kschedd.store.writes import Create, Delete, Update, status_of

_PATIENCE_S: Final = 600.0  # upstream's timeout for pods in seconds
_BATCH: Final = 64
_CHURN_MS: Final = 500
_IDLE_S: Final = 1.0
_POLL_S: Final = 0.001
_RETRY_FOR_S: Final = 20.0
_RETRY_S: Final = 1.0

Report = Callable[[str], None]


@attrs.define(eq=False)
class PerfRunError(KscheddError):
    """The error for a step that failed: an object was rejected, or pods were not scheduled in time."""

    source: str
    line: int
    opcode: str
    why: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.opcode}: {self.why}"


async def run_workload(
    case: PerfCase,
    workload: PerfWorkload,
    config: Config,
    source: Path,
    seed: int,
    report: Report = lambda what: None,
    timer: Clock = time.perf_counter,
) -> list[Collected]:
    """Return the results that the case's steps collected; times are in seconds of the timer.

    The module's docstring lists the exceptions.
    """
    given = parameters(workload)
    steps = unrolled(case.steps, given)
    if given.unused:
        names = ", ".join(given.unused)
        raise PerfRunError(
            str(source),
            1,
            case.name,
            f"parameters that workload {workload.name} defines and the case does not use: {names}",
        )
    # Upstream's benchmark also disables ServiceAccount, TaintNodesByCondition and Priority.
    admission = Admission({"Priority": False})
    controllers: list[Controller] = [VolumeController(), ResourceClaims()]
    actors = cluster_actors(config, seed=seed, state=StateOptions(admission=admission), controllers=controllers)
    async with actors as cluster:
        tracker = PodTracker(timer)
        watch = await cluster.store.watch({"Pod"})
        failure: KscheddError | None = None
        with FullCollections() as collections:
            async with trio.open_nursery() as background:
                background.start_soon(look_now_and_then, collections)  # like the daemon
                background.start_soon(tracker.run, watch)
                rules, templates = device_rules(config.rules, config.feature_gates), TemplateFolder(source)
                run = _Run(case, workload, cluster, tracker, background, str(source), templates, rules, seed, report)
                try:
                    await run.all(steps)
                except KscheddError as refused:
                    failure = refused  # raised again outside the nursery, which would wrap it in a group
                background.cancel_scope.cancel()
        watch.close()
        if failure is not None:
            raise failure
    return run.results


@attrs.define(eq=False)
class _Run:
    _case: PerfCase
    _workload: PerfWorkload
    _cluster: LiveCluster
    _tracker: PodTracker
    _background: trio.Nursery
    _source: str
    _templates: TemplateFolder
    _device_rules: DeviceRules
    _seed: int
    _report: Report
    results: list[Collected] = attrs.field(factory=list, init=False)
    _expected: dict[str, int] = attrs.field(factory=dict, init=False)  # pods to wait for at a barrier, by namespace
    _made: set[str] = attrs.field(factory=set, init=False)  # namespaces
    _node_count: int = attrs.field(default=0, init=False)
    _collecting: Collection | None = attrs.field(default=None, init=False)
    _line: int = attrs.field(default=1, init=False)
    _opcode: str = attrs.field(default="", init=False)

    async def all(self, steps: Sequence[tuple[int, Operation]]) -> None:
        for number, (line, step) in enumerate(steps):
            self._line, self._opcode = line, step.opcode
            self._report(f"step {number + 1} of {len(steps)}: {step.opcode}")
            await self._do(number, step)
        if self._collecting is not None:
            raise self._wrong("metrics are still being collected at the end: stopCollectingMetrics is missing")

    def _wrong(self, why: str) -> PerfRunError:
        return PerfRunError(self._source, self._line, self._opcode, why)

    async def _do(self, number: int, step: Operation) -> None:
        match step:
            case CreateNodes():
                await self._create(nodes(step, self._templates, number, self._node_count))
                self._node_count += step.count
            case CreateNamespaces():
                template = step.namespace_template_path
                made = namespaces(
                    step.prefix, step.count, self._templates.get(template, typed=True) if template else None
                )
                for raw in made:
                    await self._namespace(raw["metadata"]["name"], raw)
            case CreatePods():
                await self._pods(attrs.evolve(step, namespace=step.namespace or f"namespace-{number}"))
            case DeletePods():
                await self._delete_pods(step)
            case CreateAny() | CreateResourceClaims():
                await self._any(step)
            case UpdateAny():
                await self._update(step)
            case CreateResourceDriver():
                names = sorted(node.name for node in await self._cluster.store.list("Node"))
                matching = [name for name in names if fnmatch.fnmatchcase(name, step.nodes)]
                await self._create(
                    resource_slice(step.driver_name, name, step.max_claims_per_node) for name in matching
                )
            case AllocResourceClaims():
                await self._allocate(step)
            case Churn():
                await self._churn(step, step.namespace or f"namespace-{number}")
            case Barrier():
                await self._barrier(step)
            case Sleep():
                await trio.sleep(step.duration)
            case StartCollectingMetrics():
                await self._start(step.name, step.namespaces, dict(step.label_selector))
            case StopCollectingMetrics():
                await self._stop()
            case _:
                raise AssertionError(f"a step of no known class: {step!r}")

    # -- objects

    async def _namespace(self, name: str, raw: Raw | None = None) -> None:
        if not name or name in self._made:
            return
        self._made.add(name)
        self._expected.setdefault(name, 0)
        for answer in await self._cluster.store.create_many([raw or namespace_object(name)]):
            if isinstance(answer, ApiError) and not isinstance(answer, AlreadyExists):
                raise self._wrong(str(answer))

    async def _create(self, raws: Iterable[Raw], *, batch: int = 2000) -> None:
        """Create objects including the status in their manifest, because nodes and volumes need a status."""
        waiting = list(raws)
        for first in range(0, len(waiting), batch):
            for answer in await self._cluster.store.create_many(waiting[first : first + batch], restore=True):
                if isinstance(answer, ApiError):
                    raise self._wrong(str(answer))

    async def _any(self, step: CreateAny | CreateResourceClaims) -> None:
        await self._namespace(step.namespace)
        template = self._templates.get(step.template_path)
        params = step.template_params if isinstance(step, CreateAny) else {}
        for index in range(step.count):
            raw = any_object(template, step.namespace, params, index, step.count)
            await self._check_scope(raw, step.namespace)
            await self._create_one(raw)

    async def _check_scope(self, raw: Raw, namespace: str) -> None:
        kind = await self._cluster.store.do(partial(_kind_of, raw))
        if kind.namespaced != bool(namespace):
            raise self._wrong(f"namespace {'not set' if kind.namespaced else 'set'} for the kind {kind.name}")

    async def _create_one(self, raw: Raw) -> None:
        """Create an object, and retry after errors.

        Some errors are temporary: for example, the object's CustomResourceDefinition may have been created just before.
        """
        deadline = trio.current_time() + _RETRY_FOR_S
        while True:
            try:
                await self._cluster.store.create(raw)
                return
            except ApiError as refused:
                if trio.current_time() >= deadline or refused.reason in ("Invalid", "AlreadyExists", "BadRequest"):
                    raise self._wrong(str(refused)) from None
            await trio.sleep(_RETRY_S)

    async def _update(self, step: UpdateAny) -> None:
        await self._namespace(step.namespace)
        template = self._templates.get(step.template_path)
        started = trio.current_time()
        for index in range(step.count):
            if step.update_per_second:
                await trio.sleep_until(started + (index + 1) / step.update_per_second)
            raw = any_object(template, step.namespace, {}, index, step.count)
            await self._check_scope(raw, step.namespace)
            subresource = step.subresources[0] if step.subresources else ""
            try:
                await self._cluster.store.perform(Update(raw, subresource))  # type: ignore[arg-type]  # checked there
                if "status" in raw:
                    await self._cluster.store.perform(Update(raw, "status"))
            except ApiError as refused:
                raise self._wrong(str(refused)) from None

    async def _allocate(self, step: AllocResourceClaims) -> None:
        store = self._cluster.store
        claims = await store.list("ResourceClaim", step.namespace or None)
        classes = {each.name: each for each in await store.list("DeviceClass")}
        nodes = [node for node in await store.list("Node") if isinstance(node, Node)]
        everything = await store.list("ResourceClaim"), nodes, await store.list("ResourceSlice"), classes
        try:
            made = list(allocated(claims, *everything, self._device_rules, random.Random(self._seed)))
        except AllocationError as fault:
            raise self._wrong(str(fault)) from None
        for place in range(0, len(made), _BATCH):
            writes = [status_of(claim, {"allocation": kept}) for claim, kept in made[place : place + _BATCH]]
            for answer in await store.perform_each(writes):
                if isinstance(answer, ApiError):
                    raise self._wrong(str(answer))

    # -- pods

    async def _pods(self, step: CreatePods) -> None:
        await self._namespace(step.namespace)
        wanted = list(pods(step, self._templates, self._case.default_pod_template_path))
        if step.persistent_volume_template_path:
            await self._create(raw for raw in wanted if raw["kind"] != "Pod")
            wanted = [raw for raw in wanted if raw["kind"] == "Pod"]
        if step.collect_metrics:
            await self._start(step.namespace, (step.namespace,), {})
        first, before = len(self._tracker.bindings), self._tracker.ever_bound(step.namespace)
        for place in range(0, len(wanted), _BATCH):
            for answer in await self._cluster.store.create_many(wanted[place : place + _BATCH]):
                if isinstance(answer, ApiError):
                    raise self._wrong(str(answer))
        if step.skip_wait_to_completion:
            self._expected[step.namespace] += step.count
        elif step.steady_state:
            await self._steadily(step, first, wanted)
        else:
            bound = self._tracker.ever_bound
            await self._until(lambda: bound(step.namespace) - before, step.count, step.namespace, "scheduled")
        if step.collect_metrics:
            await self._stop()

    async def _steadily(self, step: CreatePods, first: int, models: Sequence[Raw]) -> None:
        """Replace each bound pod by a new one, until the duration is over."""
        if step.duration <= 0 or not models:
            raise self._wrong("pods in a steady state take a count and a duration above 0")
        seen, replaced = first, 0
        with trio.move_on_after(step.duration):
            while True:
                bound = list(self._tracker.bound_since(seen, (step.namespace,), {}))
                seen = len(self._tracker.bindings)
                if not bound:
                    await self._tracker.changed()
                    continue
                writes: list[Delete | Create] = []
                for each in bound:
                    writes.append(Delete("Pod", step.namespace, each.pod.name, each.pod.uid, grace_period_s=0))
                    writes.append(Create(_renamed(models[replaced % len(models)], replaced)))
                    replaced += 1
                for answer in await self._cluster.store.perform_each(writes):
                    if isinstance(answer, ApiError):
                        raise self._wrong(str(answer))
        if not replaced:
            raise self._wrong("no pod was scheduled during the steady state")

    async def _until(self, reached: Callable[[], int], count: int, namespace: str, what: str) -> None:
        """Wait until the count reaches `count` pods. The timeout starts again after each change."""
        done = reached()
        while done < count:
            with trio.move_on_after(_PATIENCE_S) as patience:
                await self._tracker.changed()
            if patience.cancelled_caught:
                why = f"{done} of {count} pods in {namespace} were {what}, and no other for {_PATIENCE_S:g} s"
                raise self._wrong(why)
            done = reached()

    async def _barrier(self, step: Barrier) -> None:
        selector = dict(step.label_selector)
        for name in step.namespaces:
            if name not in self._expected:
                raise self._wrong(f"unknown namespace {name}")
        waited_for = step.namespaces or tuple(self._expected)
        for name in waited_for:
            count = self._expected[name]
            if step.stage_requirement == STAGE_ATTEMPTED:
                await self._until(partial(self._tracker.attempted, name, selector), count, name, "attempted")
            else:
                await self._until(partial(self._tracker.scheduled, name, selector), count, name, "scheduled")
                self._expected[name] = 0

    async def _delete_pods(self, step: DeletePods) -> None:
        doomed = [pod.name for pod in self._tracker.pods(step.namespace, step.label_selector)]

        async def delete() -> None:
            if not step.delete_pods_per_second:
                await self._cluster.store.perform_each([Delete("Pod", step.namespace, name) for name in doomed])
                return
            started = trio.current_time()
            for number, name in enumerate(doomed):
                await trio.sleep_until(started + (number + 1) / step.delete_pods_per_second)
                await self._cluster.store.perform_each([Delete("Pod", step.namespace, name)])

        if step.skip_wait_to_completion:
            self._background.start_soon(delete)
        else:
            await delete()

    # -- churn

    async def _churn(self, step: Churn, namespace: str) -> None:
        await self._namespace(namespace)
        models = []
        for path in step.template_paths:
            raw = self._templates.get(path).rendered({})
            kind = await self._cluster.store.do(partial(_kind_of, raw))
            models.append(in_namespace(raw, namespace if kind.namespaced else ""))
        interval_s = (step.interval_milliseconds or _CHURN_MS) / 1e3
        work = self._recreate if step.mode == CHURN_RECREATE else self._keep_creating
        self._background.start_soon(work, models, step.number, interval_s)

    async def _keep_creating(self, models: Sequence[Raw], most: int, interval_s: float) -> None:
        rounds = 0
        while not most or rounds < most:
            await trio.sleep(interval_s)
            await self._cluster.store.create_many(models)
            rounds += 1

    async def _recreate(self, models: Sequence[Raw], most: int, interval_s: float) -> None:
        """Alternately create and delete `most` objects of each template."""
        there: list[list[Object | None]] = [[None] * most for _ in models]
        rounds = 0
        while True:
            await trio.sleep(interval_s)
            for model, objects in zip(models, there, strict=True):
                old = objects[rounds % most]
                write = Create(model) if old is None else Delete(old.kind, old.namespace, old.name)
                (answer,) = await self._cluster.store.perform_each([write])
                # like upstream, continue after an error, and try again in the next round
                objects[rounds % most] = answer if old is None and isinstance(answer, Object) else None
            rounds += 1

    # -- measurements

    async def _start(self, name: str, within: tuple[str, ...], selector: dict[str, str]) -> None:
        if self._collecting is not None:
            raise self._wrong("metrics are being collected already: the two measurements overlap")
        config = self._case.metrics_collector_config or DEFAULT_COLLECTOR
        families = await self._metrics()
        label = f"BenchmarkPerfScheduling/{self._case.name}/{self._workload.name}/{name}"
        first = len(self._tracker.bindings)
        self._collecting = Collection(label, within, selector, config, self._tracker.timer(), first, families)

    async def _metrics(self) -> list[MetricFamily]:
        """Return the scheduler's metrics once no bindings are pending, or after a second, since churn never ends."""
        with trio.move_on_after(_IDLE_S):
            while await self._cluster.scheduler.query(_binding):  # noqa: ASYNC110 - no event for another actor's state
                await trio.sleep(_POLL_S)
        return await self._cluster.scheduler.query(lambda driver: driver.metrics())

    async def _stop(self) -> None:
        if self._collecting is None:
            raise self._wrong("startCollectingMetrics is missing before stopCollectingMetrics")
        families = await self._metrics()
        self.results.append(collected(self._collecting, self._tracker, self._tracker.timer(), families))
        self._collecting = None


def _binding(driver: SchedulingDriver) -> int:
    return len(driver.bindings.cycles)


def _kind_of(raw: Raw, store: ClusterWriter) -> Kind:
    return store.kind_of(raw)


def _renamed(model: Raw, number: int) -> Raw:
    """Return a copy of the pod, with another name if the template specifies a name."""
    meta = model["metadata"]
    return {**model, "metadata": {**meta, "name": f"{meta['name']}-{number}"}} if "name" in meta else model
