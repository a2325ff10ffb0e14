"""The forks of a cluster, by name: each is a cluster in virtual time that serves the same methods.

A fork exists until it is discarded or the daemon stops. Their number is limited. When the limit is reached, a fork must
be discarded before another can be created. The error names the fork that has been unused for the longest time.

Work in a fork runs in a thread of the worker pool, one call at a time: the thread that holds `busy` owns the fork. Long
work (advancing time) ends when the fork is discarded, or when the caller stops waiting.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import attrs

from kschedd.answers import plain
from kschedd.api.text.similar import did_you_mean, similar_names
from kschedd.clusters.answers import ForkAnswer
from kschedd.clusters.virtual import MethodsOf, VirtualCluster, VirtualDaemon
from kschedd.config.versions.feature_gates import parse_flag
from kschedd.config.versions.kube_versions import KubernetesVersion
from kschedd.scheduling.inputs import ChangeConfig
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot
from kschedd.service.errors import RpcError
from kschedd.service.workers import GivenUp
from kschedd.simulation.comparing.changes import DiffAnswer, ForkStart, changes
from kschedd.simulation.engine import Engine

T = TypeVar("T")

MOST_FORKS: Final = 8
_LOOK_S: Final = 0.1  # seconds between two checks whether the waiting caller has given up
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


def _not_found(name: str, names: Iterable[str]) -> RpcError:
    known = list(names)
    hint = did_you_mean(name, known) or "; `fork list` lists the forks"
    return RpcError(
        "not_found", f'there is no fork "{name}"{hint}', {"name": name, "similar": similar_names(name, known)}
    )


@attrs.define(eq=False)
class NamedFork:
    """A fork with its metadata. `of` is the fork from which this fork was created; "" for the cluster itself."""

    name: str
    of: str
    made_s: float
    used_s: float
    cluster: VirtualCluster
    daemon: VirtualDaemon
    start: ForkStart
    user: str  # the user who created the fork
    owner: str  # the same user if it is read-only, otherwise ""
    begins_again: str  # the pod whose attempt was stopped in the original cluster; "" if there was none
    busy: threading.Lock = attrs.field(factory=threading.Lock)
    discarded: bool = False

    def use(self, work: Callable[["NamedFork"], T], given_up: GivenUp) -> T:
        """Run `work` as the owner of the fork, in a thread that may block.

        Raises RpcError if the fork was discarded.
        """
        while not self.busy.acquire(timeout=_LOOK_S):
            self.check(given_up)
        try:
            self.check(given_up)
            return work(self)
        finally:
            self.busy.release()

    def check(self, given_up: GivenUp) -> None:
        """Raise RpcError if the fork was discarded, GivenUpError if no client waits for the work any longer."""
        given_up.check()
        if self.discarded:
            raise _not_found(self.name, ())

    def close(self) -> None:
        """Delete the fork's cluster when the running work has ended.

        Closing a fork takes long if its cluster is large.
        """
        self.discarded = True
        with self.busy:
            self.cluster.engine.close()

    def changes(self) -> DiffAnswer:
        """Return all differences from the fork's state at its creation."""
        return changes(self.cluster.engine, self.start, self.cluster.log.owned)

    def describe(self, now: float) -> ForkAnswer:
        engine = self.cluster.engine
        cluster = engine.machine.cluster
        return ForkAnswer(
            self.name,
            self.user,
            self.of,
            now - self.made_s,
            now - self.used_s,
            engine.elapsed,
            cluster.table.node_count,
            cluster.pod_count,
            len(engine.driver.pending.pods),
            engine.store.version - self.start.version,
            self.begins_again,
        )


def _too_many_of_readers(most: int, whose: str) -> RpcError:
    """Return the error for too many forks. `whose` is the user; "" means all read-only users together."""
    has = f"{whose} has" if whose else "read-only users have"
    why = f"{has} {most} forks, which is the limit: discard one, or wait until one is discarded"
    return RpcError("too_many", why, {"most": most, "whose": whose})


def fork_of(
    name: str,
    of: str,
    snapshot: ClusterSnapshot,
    methods: MethodsOf,
    now: float,
    version: KubernetesVersion | None = None,
    feature_gates: Sequence[str] = (),
    user: str = "",
    owner: str = "",
) -> NamedFork:
    """Create a fork, with the rules of `version` if one is given. Call this function in a thread.

    `feature_gates` contains the states of gates for that version, as in the flag. Raises PluginLoadError, ConfigErrors.
    """
    cluster = VirtualCluster(resumed=snapshot)
    cluster.engine.start_s = cluster.engine.now  # the elapsed time starts at zero when the fork is created
    start = ForkStart(cluster.engine)
    if version is not None or feature_gates:
        engine = cluster.engine
        before = engine.machine.config
        version = version or before.version
        gates = parse_flag(feature_gates, version.gates)
        what = " ".join([f"kube-version {version.name}", *(f"{gate}={str(gates[gate]).lower()}" for gate in gates)])
        config = engine.config_by(before, version, gates)
        engine.driver.step(ChangeConfig(config, what), engine.now)
        engine.store.stand_for(config.rules)
    begins_again = "" if snapshot.stopped else snapshot.driver.begins_again
    return NamedFork(name, of, now, now, cluster, VirtualDaemon(cluster, methods), start, user, owner, begins_again)


class Forks:
    """All forks, and the names of forks that are being created."""

    def __init__(self, most: int = MOST_FORKS, most_of_readers: int = 4, most_of_one_reader: int = 2) -> None:
        self._most = most
        self._most_of_readers, self._most_of_one_reader = most_of_readers, most_of_one_reader
        self._most_made = self._most_made_by_readers = self._most_made_by_one_reader = 0  # highest numbers so far
        self._forks: dict[str, NamedFork] = {}
        self._making: dict[str, str] = {}  # name -> owner of the forks being created
        self._count = 0

    def __iter__(self) -> Iterator[NamedFork]:
        return iter(self._forks.values())

    def find(self, name: str, now: float) -> NamedFork:
        """Return the fork with that name, and record that it was used. Raises RpcError."""
        fork = self._forks.get(name)
        if fork is None:
            raise _not_found(name, self._forks)
        fork.used_s = now
        return fork

    def _by_readers(self) -> Counter[str]:
        """Return the number of forks of each read-only user, by user name."""
        return Counter(fork.owner for fork in self._forks.values() if fork.owner)

    def reserve(self, name: str | None, now: float, owner: str = "") -> str:
        """Reserve and return the name of a fork to be created; None chooses a name.

        `owner` is the name of a read-only user, or "".
        """
        if name is None:
            while not name or name in self._forks or name in self._making:
                self._count += 1
                name = f"fork-{self._count}"
        if not _NAME.fullmatch(name):
            why = f'"{name[:100]}" is no name of a fork: small letters, digits, "-" and ".", 63 at most'
            raise RpcError("invalid", why, {"name": name[:100]})
        if name in self._forks or name in self._making:
            why = f'there is a fork "{name}" already: discard it, or take another name'
            raise RpcError("already_exists", why, {"name": name})
        if len(self._forks) + len(self._making) >= self._most:
            idle = min(self._forks.values(), key=lambda fork: fork.used_s, default=None)
            oldest, idle_s = ("", 0.0) if idle is None else (idle.name, now - idle.used_s)
            why = f'discard one (`fork list` lists them; "{oldest}" has not been used for {idle_s:.0f} s)'
            data = {"most": self._most, "oldest": oldest, "idle_s": idle_s}
            raise RpcError("too_many", f"there are {self._most} forks, which is the limit: {why}", data)
        if owner:
            counts = self._by_readers() + Counter(filter(None, self._making.values()))
            if counts[owner] >= self._most_of_one_reader:
                raise _too_many_of_readers(self._most_of_one_reader, owner)
            if counts.total() >= self._most_of_readers:
                raise _too_many_of_readers(self._most_of_readers, "")
        self._making[name] = owner
        return name

    def add(self, fork: NamedFork) -> None:
        self._forks[fork.name] = fork
        self._most_made = max(self._most_made, len(self._forks))
        counts = self._by_readers()
        self._most_made_by_readers = max(self._most_made_by_readers, counts.total())
        self._most_made_by_one_reader = max(self._most_made_by_one_reader, *counts.values(), 0)

    def used(self) -> tuple[int, int]:
        """Return the current and the highest number of forks."""
        return len(self._forks), self._most_made

    def used_by_readers(self) -> tuple[int, int]:
        return self._by_readers().total(), self._most_made_by_readers

    def used_by_one_reader(self) -> tuple[int, int]:
        """Return the current and the highest number of forks of one read-only user, the user with the most forks."""
        return max(self._by_readers().values(), default=0), self._most_made_by_one_reader

    def release(self, name: str) -> None:
        """Release the reserved name of a fork, after its creation has succeeded or failed."""
        self._making.pop(name, None)

    def discard(self, name: str) -> NamedFork:
        """Discard a fork. Raises RpcError."""
        fork = self._forks.pop(name, None)
        if fork is None:
            raise _not_found(name, self._forks)
        return fork


class ObservedFork:
    """A client of a cluster in virtual time whose only fork remains readable, even after it was discarded.

    `begin` is called with the fork's engine when the fork is created. Every fork name refers to this fork. `methods`
    are the methods of the cluster, `of_fork` those that a fork serves.
    """

    def __init__(
        self, cluster: VirtualCluster, begin: Callable[[Engine], None], methods: MethodsOf, of_fork: MethodsOf
    ) -> None:
        self._cluster = cluster
        self._of_fork = of_fork
        self._daemon = VirtualDaemon(cluster, methods)
        self._begin = begin
        self._fork: NamedFork | None = None

    def call(self, method: str, /, **params: Any) -> Any:
        """Call a method as a client of a daemon does."""
        if not method.startswith("fork."):
            return self._daemon.call(method, **params)
        if method == "fork.create":
            engine = self._cluster.engine
            snapshot = engine.snapshot()
            if params.get("what_if"):
                snapshot.store.keep_jobs_running()
            self._fork = fork_of("observed", "", snapshot, self._of_fork, engine.now)
            self._begin(self._fork.cluster.engine)
            return plain(self._fork.describe(engine.now))
        assert self._fork is not None, "a fork has been made"
        engine = self._fork.cluster.engine
        if method == "fork.call":
            return self._fork.daemon.call(params["method"], **params["params"])
        if method == "fork.advance":
            return {"at_rest": engine.run_to_rest(params["limit_s"])}
        if method == "fork.diff":
            return plain(self._fork.changes())
        assert method == "fork.discard", f"{method} is not expected"
        return None
