"""Notifications to systemd: the daemon is ready, reloads, stops, or is alive.

Each notification is a datagram to the socket in $NOTIFY_SOCKET, as sd_notify(3) describes; without that variable,
nothing is sent. The watchdog is notified only after the daemon has answered a request, so that a daemon whose actors
hang is restarted. No exception is raised: a notification that cannot be sent is dropped.
"""

import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import attrs
import trio

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


@attrs.frozen
class ServiceManager:
    """`address`: systemd's socket, "" without one; `watchdog_s`: the watchdog interval, 0 without a watchdog."""

    address: str = ""
    watchdog_s: float = 0.0

    @classmethod
    def of(cls, environment: Mapping[str, str], pid: int) -> "ServiceManager":
        """Return the notifier that the environment specifies."""
        usec, whose = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
        meant = usec.isascii() and usec.isdigit() and whose in ("", str(pid))
        return cls(environment.get("NOTIFY_SOCKET", ""), int(usec) / 1e6 if meant else 0.0)

    def tell(self, *assignments: str) -> None:
        if not self.address:
            return
        # A name that begins with "@" belongs to the abstract namespace.
        where = "\0" + self.address[1:] if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(assignments).encode(), where)
        except (OSError, ValueError):  # there is no receiver, or its queue is full
            return

    def tell_reloading(self) -> None:
        self.tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    async def watchdog(self, alive: Callable[[], Awaitable[object]]) -> None:
        """Notify systemd that the daemon is alive, twice per watchdog interval, as long as `alive` returns."""
        if not self.address or not self.watchdog_s:
            return
        while True:
            await alive()
            self.tell("WATCHDOG=1")
            await trio.sleep(self.watchdog_s / 2)
