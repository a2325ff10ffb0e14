"""Network services of a daemon other than its socket: TCP for other machines, and the audit log of requests."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog
import trio

from kschedd.access.audit_log import AuditFile, AuditLog
from kschedd.access.credentials import Credentials
from kschedd.access.listening import open_listeners
from kschedd.limits import DaemonLimits
from kschedd.rpc.sessions.remote import AdmissionLimits, RemoteDoor

log = structlog.get_logger("kschedd")


async def remote_door(credentials: Credentials, limits: DaemonLimits, opened: AsyncExitStack) -> RemoteDoor:
    """Open the TCP listeners. Raises AccessError if the address cannot be used."""
    listeners = await open_listeners(credentials.settings)
    for listener in listeners:
        await opened.enter_async_context(listener)
    waiting = AdmissionLimits(limits["unauthenticated"], limits["unauthenticated-time"])
    return RemoteDoor(listeners, credentials, waiting)


def tell_of(remote: RemoteDoor) -> None:
    users = remote.credentials.tokens.users
    log.info(
        "listening",
        address=remote.url,
        tls=remote.credentials.tls is not None,
        tokens=len(users),
        read_only=sum(user.read_only for user in users),
    )
    if remote.credentials.tls is None:
        log.warning("listening", what=f"{remote.url} has no TLS: it is for this machine only, and for tunnels to it")


@asynccontextmanager
async def audit_log(file: AuditFile, limits: DaemonLimits) -> AsyncIterator[AuditLog]:
    """Yield the audit log, which is written completely when the context ends. Raises AccessError."""
    audit = AuditLog(file, most_waiting=limits["audited"])
    async with trio.open_nursery() as nursery:
        await nursery.start(audit.run)
        try:
            yield audit
        finally:
            audit.close()
