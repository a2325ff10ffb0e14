"""A running daemon, with the operations of a cluster in this process."""

import shlex
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from kschedd.answers import read
from kschedd.clusters.answers import ForkAnswer
from kschedd.rpc.blocking import BlockingClient
from kschedd.sdk.handle import ClusterHandle, Commands, Raw, seconds
from kschedd.sdk.shown_answers import PlannedChanges, planned
from kschedd.simulation.comparing.changes import DiffAnswer


class RemoteCluster(ClusterHandle):
    """The cluster of a running daemon, or a fork of it; `connect` returns one.

    The class lacks `from_dump`, `warnings`, `version`, `snapshot`, `restore` and `plugin_faults` of `Cluster`. Methods
    that let time pass require a daemon in virtual time (`kschedd run --time virtual`). In a fork, these methods always
    work. `fork_name`: "" means the cluster itself.
    """

    def __init__(self, client: BlockingClient, fork_name: str = "") -> None:
        self._client = client
        self.fork_name = fork_name
        self._began_s = self.time

    def call(self, method: str, /, **params: Any) -> Any:
        if self.fork_name:
            return self._client.call("fork.call", fork=self.fork_name, method=method, params=params)
        return self._client.call(method, **params)

    def _call(self, answer: Any, method: str, /, **params: Any) -> Any:
        return read(answer, self.call(method, **params))

    def _list(self, kind: str) -> Sequence[Raw]:
        found: Sequence[Raw] = self.call("objects.list", kind=kind)["items"]
        return found

    @property
    def time(self) -> float:
        found: float = self.call("time.get")["now_s"]
        return found

    @property
    def elapsed(self) -> float:
        return self.time - self._began_s

    def advance(self, duration: str | float) -> None:
        """Let virtual time pass. Raises RpcError if the daemon's time is not virtual."""
        if self.fork_name:
            self._client.call("fork.advance", fork=self.fork_name, seconds=seconds(duration))
            return
        self._move(seconds=seconds(duration))

    def _advance_to(self, moment: float) -> None:
        if self.fork_name:
            self.advance(max(0.0, moment - self.time))
        else:
            self._move(until_s=moment)

    def _move(self, **to: Any) -> None:
        with self._client.subscribe("time.advance", **to) as moves:
            for _ in moves:  # until the stream ends: each item is one advance of the clock
                continue

    def _next_moment(self) -> float | None:
        if not self.fork_name:
            self._move(seconds=0.0)  # wait until the daemon has finished all work that is due now
        found: float | None = self.call("time.get")["next_s"]
        return found

    def run_until_idle(self, limit: str | float = "1h") -> bool:
        if not self.fork_name:
            with self.fork() as copy:  # the copy becomes idle at the same virtual time as the cluster
                rests = copy.run_until_idle(limit)
                moment = copy.time
            self._move(until_s=moment)
            return rests
        found = self._client.call("fork.advance", fork=self.fork_name, seconds=None, limit_s=seconds(limit))
        return bool(found["at_rest"])

    def _execute(self, command: str, given: str) -> tuple[str, int]:
        from kschedd.scenarios.commands import with_input
        from kschedd.verbs.command_line.session import VerbSession
        from kschedd.verbs.scheduler.forks import session_in
        from kschedd.verbs.table import run_words

        printed: list[str] = []
        session = VerbSession(
            lambda: self._client,
            printed.append,
            printed.append,
            cluster_time=lambda: self.time,
            read_input=given.encode,
            program="kschedd ",
        )
        inner = session_in(session, self.fork_name) if self.fork_name else session
        status = run_words(inner, with_input(shlex.split(command), given))
        return "".join(printed), status

    def fork(self) -> "RemoteCluster":
        return self._forked(what_if=False)

    def _forked(self, *, what_if: bool) -> "RemoteCluster":
        made = self._client.ask(ForkAnswer, "fork.create", of=self.fork_name or None, what_if=what_if)
        return RemoteCluster(self._client, made.name)

    def plan(
        self, change: "Callable[[RemoteCluster], object] | Commands", *, within: str | float = "1h"
    ) -> PlannedChanges:
        with self._forked(what_if=True) as copy:
            copy._make(change)
            copy.run_until_idle(within)
            return planned(self._client.ask(DiffAnswer, "fork.diff", fork=copy.fork_name))

    def close(self) -> None:
        """Close the connection; for a fork, discard the fork."""
        if self.fork_name:
            self._client.call("fork.discard", fork=self.fork_name)
        else:
            self._client.close()

    def __repr__(self) -> str:
        where = f"{self._client.path}, fork {self.fork_name}" if self.fork_name else self._client.path
        return f"<RemoteCluster: {where}>"


def connect(address: str | PathLike[str] | None = None, *, timeout_s: float | None = None) -> RemoteCluster:
    """Connect to a running daemon.

    `address`: the path of the daemon's socket, or `tcp://HOST:PORT?ca-file=FILE&token-file=FILE`; None:
    $KSCHEDD_SOCKET, or the default socket if it is unset. `timeout_s`: the time limit of a call in seconds; None: no
    limit. Raises NoDaemonError if no daemon answers, and SocketPathError if the address cannot be used.
    """
    return RemoteCluster(BlockingClient(address, timeout=timeout_s))
