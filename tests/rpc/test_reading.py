"""Tests that read-only users cannot call methods that change state.

A method without a declaration counts as changing state.
"""

from typing import cast

import pytest

from kschedd.access.users import READ_ONLY, Caller, User
from kschedd.methods import daemon_methods
from kschedd.rpc.sessions.built_in import method_table
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import ReadOnlyError
from kschedd.service.table import check_may_call

WRITING = """
cluster.load config.change config.undo daemon.profile daemon.stop debug.attach debug.break_add debug.break_delete
debug.break_set debug.detach debug.drop debug.force debug.next debug.pause debug.resume debug.score debug.step
debug.until debug.veto debug.wait descheduler.run nodes.add nodes.cordon nodes.initialize nodes.pressure nodes.start
nodes.stop nodes.taint nodes.uncordon objects.annotate objects.apply objects.create objects.delete objects.label
objects.patch objects.replace objects.scale plugins.reload pods.bind pods.evict pools.launch
queue.activate queue.move recording.start recording.stop scheduler.set_weight time.advance time.set_speed waiting.allow
waiting.reject
""".split()
OWN_FORKS = ["fork.advance", "fork.call", "fork.create", "fork.discard"]
TABLE = method_table(daemon_methods(cast(ClusterBackend, None), cast(DaemonState, None)))
READER = Caller(User("eve", (READ_ONLY,)))


@pytest.mark.parametrize("name", WRITING)
def test_a_reader_is_refused_what_changes_something(name: str) -> None:
    with pytest.raises(ReadOnlyError, match=f"{name} changes state"):
        check_may_call(READER, TABLE[name])
    check_may_call(Caller(), TABLE[name])


@pytest.mark.parametrize("name", sorted(name for name, method in TABLE.items() if method.reads))
def test_a_reader_may_call_what_only_tells(name: str) -> None:
    check_may_call(READER, TABLE[name])
    assert name not in WRITING


@pytest.mark.parametrize("name", OWN_FORKS)
def test_a_reader_may_try_in_forks_of_its_own(name: str) -> None:
    check_may_call(READER, TABLE[name])
    assert not TABLE[name].reads, "it is audited"


def test_what_each_method_says_of_readers() -> None:
    assert sorted(name for name, method in TABLE.items() if not method.reads) == sorted([*WRITING, *OWN_FORKS])
    assert [name for name, method in TABLE.items() if method.own_forks] == [
        "fork.create",
        "fork.discard",
        "fork.call",
        "fork.advance",
    ]
