"""Which methods change nothing, so that read-only users may call them: of every new one it is decided here."""

from typing import cast

import pytest

from kschedd.access.users import READ_ONLY, Caller, User
from kschedd.rpc.cluster import ClusterBackend
from kschedd.rpc.errors import ReadOnlyError
from kschedd.rpc.methods import daemon_methods
from kschedd.rpc.methods_daemon import DaemonState
from kschedd.rpc.table import check_may_call, method_table

READING = """
capacity.compare capacity.nodes capacity.pods config.changes config.check config.convert config.show
config.values daemon.clients daemon.info debug.break_list debug.state debug.watch debug.where events.list
events.watch fork.diff fork.export fork.list metrics.get nodes.leaving nodes.usage nodes.zones objects.get
objects.kinds objects.list objects.watch plugins.list queue.list queue.pod report.page rpc.authenticate
rpc.methods rpc.ping scheduler.config scheduler.decisions scheduler.explain scheduler.explain_group
scheduler.status scheduler.watch stream.cancel time.get waiting.list
""".split()
TABLE = method_table(daemon_methods(cast(ClusterBackend, None), cast(DaemonState, None)))
READER = Caller(User("eve", (READ_ONLY,)))


def test_what_changes_nothing() -> None:
    assert sorted(name for name, method in TABLE.items() if method.reads) == READING


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_reader_may_call_what_changes_nothing_and_anybody_else_everything(name: str) -> None:
    check_may_call(Caller(), TABLE[name])
    if name in READING:
        check_may_call(READER, TABLE[name])
    else:
        with pytest.raises(ReadOnlyError, match=f"{name} changes something"):
            check_may_call(READER, TABLE[name])
