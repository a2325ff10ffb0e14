"""ComponentStatuses, which are not stored, over the socket's methods."""

import pytest

from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.methods import daemon_methods
from kschedd.service.errors import RpcError


def test_components_are_healthy() -> None:
    call = VirtualDaemon(VirtualCluster(), daemon_methods).call
    listed = call("objects.list", kind="componentstatuses")["items"]
    assert [each["metadata"]["name"] for each in listed] == ["controller-manager", "scheduler"]
    one = call("objects.get", kind="cs", name="scheduler")["object"]
    assert one["conditions"] == [{"type": "Healthy", "status": "True", "message": "ok"}]
    with pytest.raises(RpcError, match="not found"):
        call("objects.get", kind="ComponentStatus", name="etcd-0")
