"""Tests of forks of read-only users: they may create and change forks of their own, but not those of others."""

from typing import Any

import pytest

from kschedd.access.users import READ_ONLY, Caller, User
from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.methods import daemon_methods
from kschedd.service.errors import RpcError
from tests.actors.clusters import node, pod


class Asked:
    """A daemon's methods, called by one of several users."""

    def __init__(self) -> None:
        self.cluster = VirtualCluster()
        self._daemon = VirtualDaemon(self.cluster, daemon_methods)
        self("admin", "objects.create", manifest=node())

    def __call__(self, user: str, method: str, /, **params: Any) -> Any:
        self._daemon.caller = Caller(User(user, () if user == "admin" else (READ_ONLY,)))
        return self._daemon.call(method, **params)

    def within(self, user: str, fork: str, method: str, /, **params: Any) -> Any:
        return self(user, "fork.call", fork=fork, method=method, params=params)


@pytest.fixture
def requests() -> Asked:
    return Asked()


def test_a_reader_tries_in_a_fork_of_its_own_what_it_may_not_do(requests: Asked) -> None:
    made = requests("eve", "fork.create")["name"]
    requests.within("eve", made, "objects.create", manifest=pod("a"))
    assert requests("eve", "fork.advance", fork=made)["at_rest"]
    ((placed, where),) = [(each["name"], each["to"]) for each in requests("eve", "fork.diff", fork=made)["pods"]]
    assert (placed, where) == ("a", "n1")
    assert requests("eve", "objects.list", kind="Pod")["items"] == []
    requests("eve", "fork.discard", fork=made)
    assert requests("eve", "fork.list") == []


@pytest.mark.parametrize("owner", ["admin", "ann"])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        pytest.param("fork.call", {"method": "objects.list", "params": {"kind": "Pod"}}, id="call"),
        pytest.param("fork.advance", {"seconds": 1}, id="advance"),
        pytest.param("fork.discard", {}, id="discard"),
    ],
)
def test_a_reader_only_looks_at_forks_of_others(
    requests: Asked, owner: str, method: str, params: dict[str, Any]
) -> None:
    made = requests(owner, "fork.create")["name"]
    with pytest.raises(
        RpcError, match=f'{method}: eve has read-only access, and did not create the fork "{made}"'
    ) as no:
        requests("eve", method, fork=made, **params)
    assert no.value.code == "forbidden"
    assert requests("eve", "fork.diff", fork=made)["pods"] == []
    assert requests("eve", "fork.create", of=made)["of"] == made
    requests("admin", "fork.discard", fork=made)


@pytest.mark.parametrize(
    ("method", "params"),
    [("cluster.load", {"paths": ["/etc"]}), ("plugins.reload", {"file": "/etc/plugin.py"})],
)
def test_nothing_outside_is_read_for_a_reader(requests: Asked, method: str, params: dict[str, Any]) -> None:
    made = requests("eve", "fork.create")["name"]
    with pytest.raises(RpcError, match=f"{method} changes state, but eve has read-only access") as refused:
        requests.within("eve", made, method, **params)
    assert refused.value.code == "forbidden"


def test_readers_have_a_share_of_the_forks_each_and_together(requests: Asked) -> None:
    for user in ("eve", "ann"):
        for _ in range(2):
            requests(user, "fork.create")
        with pytest.raises(RpcError, match=f"{user} has 2 forks, which is the limit") as refused:
            requests(user, "fork.create")
        assert refused.value.code == "too_many"
    with pytest.raises(RpcError, match="read-only users have 4 forks, which is the limit"):
        requests("bob", "fork.create")
    used = {bound["name"]: (bound["used"], bound["most"]) for bound in requests("admin", "daemon.limits")}
    assert (used["forks"], used["forks-of-readers"], used["forks-of-one-reader"]) == ((4, 4), (4, 4), (2, 2))
    requests("admin", "fork.create")
    requests("eve", "fork.discard", fork="fork-1")
    requests("bob", "fork.create")
