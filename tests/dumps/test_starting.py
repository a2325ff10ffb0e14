"""A daemon that starts with a dump, and keeps a journal."""

import json
from functools import partial
from pathlib import Path

import pytest

from kschedd.actors.clock import VIRTUAL, Clock
from kschedd.api.text.times import stamp
from kschedd.config.loading.load import default_config
from kschedd.dumps.loading import read_dump
from kschedd.startup.state import EmptyDump, StateOptions, load_origin, open_store
from kschedd.store.cluster_api import listed
from kschedd.store.journal.state_dir import contains_dump
from tests.dumps.objects import node


async def test_a_start_with_a_dump_that_has_nothing_is_refused_and_the_next_one_takes_its_dump(tmp_path: Path) -> None:
    rules, clock = default_config().rules, Clock.started()

    def opened(dump: Path) -> list[str]:
        begin = partial(load_origin, lambda now_s: read_dump([str(dump)], now=now_s), [str(dump)], clock)
        journal, store = open_store(StateOptions(journal=tmp_path / "journal.db", begin=begin), clock, 1, rules)
        assert journal is not None
        journal.close()
        return [event.new.name for event in listed(store, frozenset(("Node",)))]

    dump = tmp_path / "cluster.json"
    with pytest.raises(EmptyDump, match="no Kubernetes objects found"):
        opened(dump)
    assert not contains_dump(tmp_path)
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("n1", 1)]}))
    assert opened(dump) == ["n1"]
    assert contains_dump(tmp_path), "a later start without --from must treat the cluster as a copy"


async def test_time_starts_no_earlier_than_the_latest_time_in_the_dump(tmp_path: Path) -> None:
    rules, clock, dump = default_config().rules, Clock.started(0.0, VIRTUAL), tmp_path / "cluster.json"
    dated = node("n1", 1)
    dated["metadata"]["creationTimestamp"] = "2026-11-29T12:00:00Z"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [dated]}))
    begin = partial(load_origin, lambda now_s: read_dump([str(dump)], now=now_s), [str(dump)], clock)
    open_store(StateOptions(begin=begin), clock, 1, rules)
    assert stamp(clock.now()) == "2026-11-29T12:00:00Z"
