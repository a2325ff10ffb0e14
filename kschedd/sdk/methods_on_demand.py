"""The methods of a cluster in process: those that every program calls, and the others once one of them is called.

The modules of all methods take a fifth of the time of the library's import, and their table a third of a new cluster's.
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
    """The table of `kschedd.methods.daemon_methods`, made when a method is looked up that most programs do not call."""

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
