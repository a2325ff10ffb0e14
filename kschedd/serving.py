"""The daemon as a program: a cluster with its socket and other doors, from its options until it is stopped.

`run_daemon` reads the options, locks the state directory, opens the doors, starts the cluster (`kschedd.daemon`), and
serves until SIGTERM, SIGINT or `daemon.stop`. SIGHUP has files read again. A bug in any actor ends up here: it is
logged with its traceback, and the exit status says so.
"""

import os
import random
import signal
import sys
from contextlib import AsyncExitStack, closing
from functools import partial
from pathlib import Path

import structlog
import trio

from kschedd.access.listening import raise_file_limit
from kschedd.actors.cluster import LiveCluster
from kschedd.apiserver.serving import http_face
from kschedd.apiserver.version import ServedVersion
from kschedd.config.model import Config
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.parts import without_parts
from kschedd.daemon import cluster_actors
from kschedd.dumps.loading import LoadOptions
from kschedd.errors import KscheddError
from kschedd.framework.registry import Registry
from kschedd.garbage_collection import freeze_gc, tune_gc
from kschedd.recording.wiring import RecordOptions
from kschedd.rpc.listener import unix_listener
from kschedd.rpc.methods import daemon_methods
from kschedd.rpc.methods_daemon import DaemonState
from kschedd.rpc.paths import default_socket_path
from kschedd.rpc.protocol import Limits
from kschedd.rpc.pushing import push_metrics
from kschedd.rpc.reloading import Reloading
from kschedd.rpc.sending import Total
from kschedd.rpc.server import Places, Server
from kschedd.rpc.session import SessionLimits, Shared
from kschedd.rpc.table import method_table
from kschedd.rpc.unfinished import Unfinished
from kschedd.shutdown import ORDERLY_S, end_within, heeded, lift_deadline
from kschedd.startup.clock import started_clock
from kschedd.startup.doors import audit_log, remote_door, tell_of
from kschedd.startup.log import configure_log
from kschedd.startup.options import DaemonOptions, admission_of, read_config, read_options, version
from kschedd.startup.state import load_origin
from kschedd.store.admission import Admission
from kschedd.store.clock_mark import ClockMark
from kschedd.store.state_dir import lock_state_dir
from kschedd.systemd import READY, STOPPING, ServiceManager
from kschedd.telemetry.otlp import exporting

log = structlog.get_logger("kschedd")

SWITCH_S = 0.001  # thread switch interval; Python's default of 5 ms delays the event loop by up to 20 ms in one request
BUG = 70  # exit status: internal software error, EX_SOFTWARE in sysexits.h


async def run_daemon(options: DaemonOptions, *, task_status: trio.TaskStatus[Path] = trio.TASK_STATUS_IGNORED) -> int:
    """Run until SIGTERM, SIGINT or `daemon.stop`; returns the exit status. Reports the socket's path once it serves.

    Raises KscheddError for faults in options, configuration, plugins, state or socket.
    """
    configure_log(options.log_level)
    tune_gc()
    sys.setswitchinterval(SWITCH_S)
    config, registry = read_options(options)
    admission = admission_of(options, registry)
    with lock_state_dir(options.state_dir) as state:
        try:
            await _serve(options, config, registry, admission, state, task_status)
        except Exception as raised:  # the one place where a bug is logged
            error = _only(raised)
            if isinstance(error, KscheddError):
                raise error from None
            log.critical("bug", what="the daemon has stopped because of a fault of its own", exc_info=raised)
            return BUG
        finally:
            lift_deadline()
    log.info("stopped")
    return 0


async def _serve(
    options: DaemonOptions,
    config: Config,
    registry: Registry,
    admission: Admission,
    state: Path | None,
    task_status: trio.TaskStatus[Path],
) -> None:
    path, limits = (options.socket or default_socket_path()).absolute(), options.limits
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    signals: list[signal.Signals] = []
    daemon: DaemonState | None = None
    serving: trio.Nursery | None = None
    reload = trio.Event()
    manager = ServiceManager.of(os.environ, os.getpid())

    def told(number: signal.Signals, count: int) -> None:
        log.info("signal", name=number.name)
        signals.append(number)
        if daemon is not None:
            daemon.stop.set()
        if count > 1 and serving is not None:
            serving.cancel_scope.cancel()  # a second signal disconnects the clients

    async with AsyncExitStack() as opened:
        opened.enter_context(
            heeded(told, lambda: reload.set())
        )  # first, so that signals are handled until the journal is closed
        # Refused before anything else is begun.
        http = None if options.http is None else options.http.load()
        remote = None if options.listen is None else await remote_door(options.listen.load(), limits, opened)
        raise_file_limit()
        listener = await opened.enter_async_context(unix_listener(path))
        telemetry = None
        if options.otlp_endpoint:
            telemetry = opened.enter_context(exporting(options.otlp_endpoint, version()))
        taking = LoadOptions(options.keep_secrets, profiles=config.scheduler_names)
        mark = None if state is None else opened.enter_context(closing(ClockMark(state)))
        cluster = await opened.enter_async_context(
            cluster_actors(
                config,
                controllers=without_parts(embedded_controllers(options=options.controller_options), options.without),
                journal=None if state is None else state / "journal.db",
                registry=registry,
                seed=seed,
                plugin_limit_s=options.plugin_limit_s,
                drop_damaged=options.drop_damaged,
                admission=admission,
                leave_out=options.leave_out,
                max_object_bytes=options.max_object_bytes,
                service_range=options.service_range,
                begin=partial(load_origin, taking, options.origin) if options.origin else None,
                clock=started_clock(options, mark),
                mark_time=_nowhere if mark is None else mark.write,
                verbosity=options.verbosity,
                record=RecordOptions(options.record_file, options.controller_options, options.without, version()),
                limits=limits,
                telemetry=telemetry,
            )
        )
        audit = None if options.audit is None else await opened.enter_async_context(audit_log(options.audit, limits))
        face = None
        if http is not None:
            limit = options.max_request_body_bytes
            served = ServedVersion.of(config)
            face = await opened.enter_async_context(
                http_face(
                    http,
                    cluster,
                    version(),
                    limit,
                    options.service_range,
                    options.without,
                    served,
                    audit,
                    limits["http-connections"],
                )
            )
        daemon = DaemonState(version(), str(path), cluster.clock.now(), options.max_request_body_bytes)
        identity = {
            "server": "kschedd",
            "version": daemon.version,
            "pid": os.getpid(),
            "epoch": cluster.epoch,
            "max_request_body_bytes": options.max_request_body_bytes,
            **({} if face is None else {"http": face.url}),
        }
        daemon.limits = limits
        terms = SessionLimits(
            limits["requests"],
            limits["streams"],
            limits["unread"],
            limits["unread-time"],
            Limits.of_requests(options.max_request_body_bytes),
        )
        places = Places(
            limits["clients"],
            limits["clients-in-reserve"],
            limits["clients-of-one-process"],
            remote=limits["clients-on-tcp"],
        )
        shared = Shared(
            audit=audit,
            total=Total(limits["unread-of-all"]),
            unfinished=Unfinished(limits["unfinished-of-all"]),
            courtesy=cluster.courtesy,
        )
        methods = method_table(daemon_methods(cluster, daemon))
        server = Server(methods, identity=identity, terms=terms, places=places, shared=shared)
        daemon.clients = server.describe_clients
        daemon.usage |= server.usage()
        parts = {"unauthenticated": remote, "http-connections": face, "audited": audit}
        daemon.usage |= {name: part.used for name, part in parts.items() if part is not None}
        reloading = Reloading(
            cluster,
            options.plugin_files,
            None if options.config_file is None else partial(read_config, options),
            [door for door in (http, None if remote is None else remote.credentials) if door is not None],
            log,
        )

        async def reloads() -> None:
            nonlocal reload
            while True:
                await reload.wait()
                reload = trio.Event()
                manager.tell_reloading()
                whole = await reloading.run()
                manager.tell(READY, f"STATUS={'read again' if whole else 'some files could not be used: see the log'}")

        async with trio.open_nursery() as nursery:
            serving = nursery
            if signals:
                daemon.stop.set()  # signals that arrived during start-up
            await nursery.start(server.serve, [listener], remote)
            if remote is not None:
                tell_of(remote)
            if face is not None:
                await nursery.start(face.run)
                log.info("http", url=face.url)
            log.info("started", socket=str(path), seed=seed, journal=str(cluster.journal) if state else None)
            freeze_gc()
            nursery.start_soon(manager.watchdog, partial(_alive, cluster))
            manager.tell(READY, f"STATUS=at {path}")
            task_status.started(path)
            nursery.start_soon(reloads)
            if telemetry is not None:
                nursery.start_soon(push_metrics, cluster, telemetry)
            await daemon.stop.wait()
            log.info("stopping", grace_s=daemon.grace_s)
            manager.tell(STOPPING)
            end_within(daemon.grace_s + ORDERLY_S)
            server.shut_down(daemon.grace_s)
            if face is not None:
                face.shut_down(daemon.grace_s)
            while server.clients:  # noqa: ASYNC110 - sessions end by themselves, within the grace period
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()


async def _alive(cluster: LiveCluster) -> None:
    """Returns once those have answered on whom all else depends."""
    await cluster.store.do(lambda store: store.version)
    await cluster.scheduler.query(lambda owner: owner.working)


def _nowhere(now_s: float) -> None:
    """Without a state directory there is nothing to go on from."""


def _only(error: BaseException) -> BaseException:
    """The exception inside nested groups of one exception."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
