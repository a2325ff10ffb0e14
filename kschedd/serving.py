"""The daemon as a program: a cluster with its socket and other endpoints, from reading the options to shutdown.

`run_daemon` reads the options, locks the state directory, opens the endpoints, starts the cluster (`kschedd.daemon`),
and serves until SIGTERM, SIGINT or `daemon.stop`. On SIGHUP, the daemon reads its files again. A bug in any actor is
handled here: it is logged with its traceback, and the exit status is `BUG`.
"""

import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing, nullcontext
from functools import partial
from pathlib import Path

import attrs
import structlog
import trio

from kschedd.access.audit_log import AuditLog
from kschedd.access.credentials import Credentials
from kschedd.access.listening import raise_file_limit
from kschedd.access.requests import AccessRequest
from kschedd.access.users import User
from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.actors.full_collections import look_now_and_then
from kschedd.apiserver.catalogue.descriptions import Descriptions, read_descriptions
from kschedd.apiserver.catalogue.version import ServedVersion
from kschedd.apiserver.serving import HttpFace, http_face
from kschedd.apiserver.tokens import Tokens, signing_key
from kschedd.config.model import Config
from kschedd.controllers.account_tokens import AccountTokens
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.event_expiry import EventExpiry
from kschedd.controllers.parts import without_parts
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.service_accounts import PLACEHOLDER, ServiceAccounts, certificates_in
from kschedd.daemon import cluster_actors
from kschedd.dumps.loading import Prepared
from kschedd.errors import KscheddError
from kschedd.framework.registry import Registry
from kschedd.garbage_collection import FullCollections, collection_paused, tune_gc
from kschedd.live.agreement import AgreementActor
from kschedd.live.api_server import ApiServer
from kschedd.live.mirror import MirrorActor, mirroring
from kschedd.live.remote import MirroredCluster, scheduling
from kschedd.methods import daemon_methods
from kschedd.recording.wiring import RecordOptions
from kschedd.rpc.message_checks import Limits
from kschedd.rpc.paths import default_socket_path
from kschedd.rpc.sessions.built_in import method_table
from kschedd.rpc.sessions.listener import EagerListener, unix_listener
from kschedd.rpc.sessions.remote import RemoteDoor
from kschedd.rpc.sessions.sending import Total
from kschedd.rpc.sessions.server import Places, Server
from kschedd.rpc.sessions.session import SessionLimits, Shared
from kschedd.rpc.sessions.unfinished import Unfinished
from kschedd.scheduling.trial_cluster import TrialCluster
from kschedd.service.daemon.metrics import push_metrics
from kschedd.service.daemon.process import DaemonState
from kschedd.service.daemon.reloading import Reloading
from kschedd.service.operations.authorizing import check
from kschedd.service.workers import FairShares
from kschedd.shutdown import ORDERLY_S, end_within, heeded, lift_deadline
from kschedd.startup.clock import started_clock
from kschedd.startup.doors import audit_log, remote_door, tell_of
from kschedd.startup.log import configure_log
from kschedd.startup.options import DaemonOptions, admission_of, has_accounts, read_config, read_options, version
from kschedd.startup.release import by_release, dumped, read_origin, served_release
from kschedd.startup.state import StateOptions, load_origin, nowhere
from kschedd.store.admission.chain import Admission
from kschedd.store.journal.clock_mark import ClockMark
from kschedd.store.journal.state_dir import LockedStateDir, lock_state_dir
from kschedd.systemd import READY, STOPPING, ServiceManager
from kschedd.telemetry.exporter import TelemetryExporter
from kschedd.telemetry.otlp import exporting
from kschedd.web.serving import PATH, WebPage

log = structlog.get_logger("kschedd")

JOURNAL = "journal.db"  # in the state directory
# thread switch interval in seconds; Python's default of 5 ms delays the event loop by up to 20 ms in one request
SWITCH_S = 0.001
BUG = 70  # exit status: internal software error, EX_SOFTWARE in sysexits.h


async def run_daemon(options: DaemonOptions, *, task_status: trio.TaskStatus[Path] = trio.TASK_STATUS_IGNORED) -> int:
    """Run until SIGTERM, SIGINT or `daemon.stop`; returns the exit status. Reports the socket's path when it serves.

    Raises KscheddError for errors in options, configuration, plugins, state or socket.
    """
    configure_log(options.log_level)
    tune_gc()
    sys.setswitchinterval(SWITCH_S)
    config, registry = read_options(options)
    admission = admission_of(options, registry)
    locked = nullcontext() if options.state_dir is None else lock_state_dir(options.state_dir)
    with locked as state:
        try:
            await _serve(options, config, registry, admission, state, task_status)
        except Exception as raised:  # log the bug, because no other code does
            error = _only(raised)
            if isinstance(error, KscheddError):
                raise error from None
            log.critical("bug", what="the daemon has stopped because of a fault of its own", exc_info=raised)
            return BUG
        finally:
            lift_deadline()
    log.info("stopped")
    return 0


@attrs.define(eq=False)
class _Orders:
    """The orders that signals give to the process; signals may arrive before the daemon serves.

    The orders are to `stop`, immediately if `clients` is cancelled, or to `reload` its files.
    """

    stop: trio.Event = attrs.field(factory=trio.Event)
    reload: trio.Event = attrs.field(factory=trio.Event)
    clients: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    connecting: trio.CancelScope = attrs.field(factory=trio.CancelScope)  # credentials for a server are being obtained

    def notify(self, number: signal.Signals, count: int) -> None:
        log.info("signal", name=number.name)
        self.stop.set()
        self.connecting.cancel()
        if count > 1:
            self.clients.cancel()

    def read_again(self) -> None:
        self.reload.set()


async def _serve(
    options: DaemonOptions,
    config: Config,
    registry: Registry,
    admission: Admission,
    state: LockedStateDir | None,
    task_status: trio.TaskStatus[Path],
) -> None:
    """Open all resources of the daemon; everything that may be rejected is checked before the work begins."""
    path, limits, orders = (options.socket or default_socket_path()).absolute(), options.limits, _Orders()
    async with AsyncExitStack() as opened:
        # signals are handled until the journal is closed
        opened.enter_context(heeded(orders.notify, orders.read_again))
        http = None if options.http is None else options.http.load()
        descriptions = {} if options.descriptions is None else read_descriptions(options.descriptions)
        remote = None if options.listen is None else await remote_door(options.listen.load(), limits, opened)
        raise_file_limit()
        mirrored = None
        if options.mirror is not None:
            with orders.connecting:
                mirrored = await ApiServer.connect(options.mirror.kubeconfig, options.mirror.context)
            if mirrored is None:
                return
            await opened.enter_async_context(mirrored)
            if options.version_by_cluster:
                options, config = by_release(options, config, registry, await served_release(mirrored))
        listener = await opened.enter_async_context(unix_listener(path))
        telemetry = None
        if options.otlp_endpoint:
            telemetry = opened.enter_context(exporting(options.otlp_endpoint, version()))
        mark = None if state is None else opened.enter_context(closing(ClockMark(state.path)))
        clock, remote_cluster = started_clock(options, mark), None
        dump = dumped(options, config, None if state is None else state.path / JOURNAL, clock.now())
        if dump is not None:
            options, config = by_release(options, config, registry, dump.release)
        if mirrored is not None and options.mirror is not None and options.mirror.schedules:
            election = options.mirror.election(config.leader_election)
            scheduled = scheduling(mirrored, clock, election, options.mirror.pace(config.client_connection))
            remote_cluster = await opened.enter_async_context(scheduled)
        key = signing_key(None if state is None else state.path / JOURNAL)
        tokens = Tokens(clock.now, key)
        actors = cluster_actors(
            config,
            controllers=await _controllers(options, config.version.patch, tokens),
            state=_state_options(options, config, admission, state, mark, dump, clock),
            registry=registry,
            seed=random.SystemRandom().getrandbits(32) if options.seed is None else options.seed,
            clock=clock,
            plugin_limit_s=options.plugin_limit_s,
            verbosity=options.verbosity,
            record=RecordOptions(options.record_file, options.controller_options, options.without, version()),
            limits=limits,
            telemetry=telemetry,
            remote=remote_cluster,
        )
        with collection_paused():  # the journal is read back
            cluster = await opened.enter_async_context(actors)
        mirror = None
        if mirrored is not None:
            mirror = await mirroring(mirrored, cluster, frozenset(config.scheduler_names if remote_cluster else ()))
        audit = None if options.audit is None else await opened.enter_async_context(audit_log(options.audit, limits))
        shares, face = FairShares(), None
        if http is not None:
            face = await opened.enter_async_context(
                _face(http, options, config, cluster, audit, shares, descriptions, key)
            )
        most_body, started_s = options.max_request_body_bytes, cluster.clock.now()
        daemon = DaemonState(version(), str(path), started_s, most_body, stop=orders.stop, limits=limits)
        daemon.mirror = None if mirror is None else mirror.describe
        agreement = None if mirror is None or remote_cluster is not None else AgreementActor(cluster)
        daemon.agreement = None if agreement is None else agreement.describe
        daemon.leader = None if remote_cluster is None else remote_cluster.leader.describe
        server = _server(cluster, daemon, audit, face, shares)
        if face is not None and options.web:
            daemon.page = _serve_page(face, server, cluster, audit, shares, options.web_controls)
        parts = {"unauthenticated": remote, "http-connections": face, "audited": audit}
        daemon.usage |= {name: part.used for name, part in parts.items() if part is not None}
        if face is not None:
            daemon.usage["encoded-objects"] = face.encoded
            daemon.usage["http-unauthenticated"] = face.unauthenticated
        reloading = Reloading(
            cluster,
            options.plugin_files,
            None if options.config_file is None else partial(read_config, options, pipes=False),
            [door for door in (http, None if remote is None else remote.credentials) if door is not None],
            log,
        )
        mirroring_actors = (mirror, agreement, remote_cluster)
        running = _Running(orders, cluster, daemon, server, remote, face, reloading, telemetry, *mirroring_actors)
        await running.run(listener, partial(task_status.started, path))


async def _controllers(options: DaemonOptions, release: str, tokens: Tokens) -> list[Controller]:
    found = embedded_controllers(
        options=options.controller_options,
        served=True,
        kubelet_version=release,
        trials=TrialCluster.in_steps,
        seed=options.seed or 0,
    )
    if has_accounts(options):
        certificate = None if options.http is None else options.http.certificate
        text = "" if certificate is None else await trio.Path(certificate).read_text(encoding="ascii", errors="replace")
        published = certificates_in(text) or PLACEHOLDER
        found += [ServiceAccounts(published), AccountTokens(published, tokens.for_secret)]
    # kube-apiserver lets Events expire, whichever program runs the controllers
    expiry = [EventExpiry()] if options.mirror is None else []
    return [*without_parts(found, options.without), *expiry]


def _state_options(
    options: DaemonOptions,
    config: Config,
    admission: Admission,
    state: LockedStateDir | None,
    mark: ClockMark | None,
    dump: Prepared | None,
    clock: Clock,
) -> StateOptions:
    read = partial(read_origin, options, config) if dump is None else lambda now_s: dump
    return StateOptions(
        journal=None if state is None else state.path / JOURNAL,
        apart=True,
        lock=None if state is None else state.lock,
        drop_damaged=options.drop_damaged,
        leave_out=options.leave_out,
        mark_time=nowhere if mark is None else mark.write,
        begin=partial(load_origin, read, options.origin, clock) if options.origin else None,
        admission=admission,
        max_object_bytes=options.max_object_bytes,
        service_range=options.service_range,
        webhooks=options.webhooks,
        pod_behavior=options.controller_options.pod_behavior,
        bootstrap_policy=options.rbac and options.mirror is None,
        default_class=options.default_class,
    )


def _face(
    http: Credentials,
    options: DaemonOptions,
    config: Config,
    cluster: LiveCluster,
    audit: AuditLog | None,
    shares: FairShares,
    descriptions: Descriptions,
    key: bytes,
) -> AbstractAsyncContextManager[HttpFace]:
    return http_face(
        http,
        cluster,
        version(),
        options.max_request_body_bytes,
        options.service_range,
        options.without,
        ServedVersion.of(config, descriptions),
        audit,
        options.limits["http-connections"],
        options.limits["encoded-objects"],
        options.limits["http-unauthenticated"],
        shares,
        key,
    )


async def _authorize(cluster: LiveCluster, request: AccessRequest) -> None:
    await cluster.store.do(lambda store: check(store, request))


def _server(
    cluster: LiveCluster, daemon: DaemonState, audit: AuditLog | None, face: HttpFace | None, shares: FairShares
) -> Server:
    """Return the socket's server, with all methods; `daemon` receives its list of clients."""
    limits = daemon.limits
    identity = {
        "server": "kschedd",
        "version": daemon.version,
        "pid": daemon.pid,
        "epoch": cluster.epoch,
        "max_request_body_bytes": daemon.max_request_body_bytes,
        **({} if face is None else {"http": face.url}),
    }
    terms = SessionLimits(
        limits["requests"],
        limits["streams"],
        limits["unread"],
        limits["unread-time"],
        Limits.of_requests(daemon.max_request_body_bytes),
    )
    places = Places(
        limits["clients"],
        limits["clients-in-reserve"],
        limits["clients-of-one-process"],
        remote=limits["clients-on-tcp"],
    )
    shared = Shared(
        shares,
        audit=audit,
        authorize=partial(_authorize, cluster),
        total=Total(limits["unread-of-all"]),
        unfinished=Unfinished(limits["unfinished-of-all"]),
        courtesy=cluster.courtesy,
    )
    methods = method_table(daemon_methods(cluster, daemon))
    server = Server(methods, identity=identity, terms=terms, places=places, shared=shared)
    daemon.clients = server.describe_clients
    daemon.usage |= server.usage()
    return server


def _serve_page(
    face: HttpFace,
    server: Server,
    cluster: LiveCluster,
    audit: AuditLog | None,
    shares: FairShares,
    controls: bool,
) -> Callable[[User], str]:
    """Serve the page in the browser on the port of the REST API; return the function that creates links to it."""
    page = WebPage(server.methods, server.identity, face.access, shares, audit, partial(_authorize, cluster), controls)
    face.add_pages(page)
    needs_login = face.access.asks_for_credentials
    return lambda user: f"{face.url}{PATH}{f'login?code={page.logins.code_for(user)}' if needs_login else ''}"


@attrs.frozen(eq=False)
class _Running:
    """The daemon after all resources are open: it serves until it is stopped, and then gives clients time to finish."""

    _orders: _Orders
    _cluster: LiveCluster
    _daemon: DaemonState
    _server: Server
    _remote: RemoteDoor | None
    _face: HttpFace | None
    _reloading: Reloading
    _telemetry: TelemetryExporter | None
    _mirror: MirrorActor | None
    _agreement: AgreementActor | None
    _remote_cluster: MirroredCluster | None
    _manager: ServiceManager = attrs.field(factory=lambda: ServiceManager.of(os.environ, os.getpid()))

    async def run(self, listener: EagerListener, started: Callable[[], None]) -> None:
        with self._orders.clients, FullCollections() as collections:
            async with trio.open_nursery() as nursery:
                await self._open(nursery, listener)
                nursery.start_soon(self._manager.watchdog, partial(_alive, self._cluster))
                nursery.start_soon(self._begin, nursery, started)
                nursery.start_soon(self._reloads)
                nursery.start_soon(look_now_and_then, collections)
                if self._telemetry is not None:
                    nursery.start_soon(push_metrics, self._cluster, self._telemetry)
                await self._orders.stop.wait()
                await self._shut_down()
                nursery.cancel_scope.cancel()

    async def _open(self, nursery: trio.Nursery, listener: EagerListener) -> None:
        await nursery.start(self._server.serve, [listener], self._remote)
        if self._remote is not None:
            tell_of(self._remote)
        if self._face is not None:
            await nursery.start(self._face.run)
            log.info("http", url=self._face.url)
        journal = self._cluster.journal
        log.info(
            "started",
            socket=self._daemon.socket,
            seed=self._cluster.seed,
            journal=None if journal is None else str(journal),
        )

    async def _begin(self, nursery: trio.Nursery, started: Callable[[], None]) -> None:
        """Fill the mirror; during this time, the daemon can already be queried and stopped.

        Raises LiveError if filling the mirror fails.
        """
        if self._mirror is not None:
            await nursery.start(self._mirror.run, name="mirror")
        if self._agreement is not None:
            nursery.start_soon(self._agreement.run, name="agreement")
        if self._remote_cluster is not None:
            nursery.start_soon(self._remote_cluster.leader.run, self._cluster.queue, name="leader")
        self._manager.tell(READY, f"STATUS=at {self._daemon.socket}")
        started()

    async def _reloads(self) -> None:
        while True:
            await self._orders.reload.wait()
            self._orders.reload = trio.Event()
            self._manager.tell_reloading()
            whole = await self._reloading.run()
            self._manager.tell(
                READY, f"STATUS={'read again' if whole else 'some files could not be used: see the log'}"
            )

    async def _shut_down(self) -> None:
        grace_s = self._daemon.grace_s
        log.info("stopping", grace_s=grace_s)
        self._manager.tell(STOPPING)
        end_within(grace_s + ORDERLY_S)
        self._server.shut_down(grace_s)
        if self._face is not None:
            self._face.shut_down(grace_s)
        while self._server.clients:  # noqa: ASYNC110 - sessions end by themselves, within the grace period
            await trio.sleep(0.01)


async def _alive(cluster: LiveCluster) -> None:
    """Return after the actors on which all others depend have answered a request."""
    await cluster.store.do(lambda store: store.version)
    await cluster.scheduler.query(lambda owner: owner.working)


def _only(error: BaseException) -> BaseException:
    """Return the exception inside nested groups of one exception."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
