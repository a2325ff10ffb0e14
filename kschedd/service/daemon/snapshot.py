"""The method snapshot.get, which returns all objects of the cluster at one version."""

from collections.abc import Sequence
from typing import Any

import attrs

from kschedd.api.objects import Object
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.answers import SnapshotAnswer
from kschedd.service.table import Call, Large, Methods, method
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.objects.listing import in_order


@attrs.frozen(eq=False)
class SnapshotMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "snapshot.get",
        reads=True,
        doc="Returns every stored object at one version, with UID, resourceVersion and managedFields, and with the "
        "data of Secrets. `kschedd snapshot save` writes the result to a file.",
        answer=SnapshotAnswer,
        large=True,
    )
    async def get(self, call: Call) -> Any:
        def read(store: ClusterReader) -> tuple[int, list[Sequence[Object]]]:
            return store.version, [space for kind in store.kinds() for space in store.present(kind)]

        version, present = await self._cluster.store.do(read)
        objects = await call.services.turns.drive(call.client, in_order(present))
        return Large(
            {"resource_version": version, "epoch": self._cluster.epoch}, "objects", objects, shown=lambda obj: obj.raw
        )
