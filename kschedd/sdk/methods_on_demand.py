"""The methods of a cluster in this process: the common methods, and all others when a program first calls one of them.

Importing the modules of all methods takes a fifth of the library's import time, and building their table takes a third
of the time to create a cluster.
"""

from collections.abc import Iterator, Mapping

from kschedd.rpc.sessions.built_in import method_table
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.process import DaemonState
from kschedd.service.objects.reading import ReadingMethods
from kschedd.service.objects.writing import WritingMethods
from kschedd.service.scheduling.queue import QueueMethods
from kschedd.service.table import Method


class MethodsOnDemand(Mapping[str, Method]):
    """The table of `kschedd.methods.daemon_methods`, which is built when a less common method is called."""

    def __init__(self, cluster: ClusterBackend, daemon: DaemonState) -> None:
        self._made_from = cluster, daemon
        groups = ReadingMethods(cluster), WritingMethods(cluster), QueueMethods(cluster)
        self._first = {method.name: method for group in groups for method in group.table()}
        self._whole: dict[str, Method] | None = None

    def __getitem__(self, name: str) -> Method:
        found = self._first.get(name)
        return self._all()[name] if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, Method]:
        if self._whole is None:
            from kschedd.methods import daemon_methods

            self._whole = method_table(daemon_methods(*self._made_from))
        return self._whole
