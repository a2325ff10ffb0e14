"""A client of a cluster in virtual time whose fork can be observed, and is still there when it has been discarded."""

from collections.abc import Callable
from typing import Any

from kschedd.answers import plain
from kschedd.clusters.forks import NamedFork, fork_of
from kschedd.clusters.virtual import MethodsOf, VirtualCluster, VirtualDaemon
from kschedd.simulate.engine import Engine


class ObservedFork:
    """`begin` is called with the fork's engine when it is made: there is one fork, which every name means.

    `methods` are those of the cluster, `of_fork` those that a fork answers.
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
        """As a daemon's client does."""
        if not method.startswith("fork."):
            return self._daemon.call(method, **params)
        if method == "fork.create":
            engine = self._cluster.engine
            self._fork = fork_of("observed", "", engine.snapshot(), self._of_fork, engine.now)
            self._begin(self._fork.cluster.engine)
            return plain(self._fork.told(engine.now))
        assert self._fork is not None, "a fork has been made"
        engine = self._fork.cluster.engine
        if method == "fork.call":
            return self._fork.daemon.call(params["method"], **params["params"])
        if method == "fork.advance":
            return {"at_rest": engine.run_to_rest(params["limit_s"])}
        if method == "fork.diff":
            return self._fork.changes()
        assert method == "fork.discard", f"{method} is not expected"
        return None
