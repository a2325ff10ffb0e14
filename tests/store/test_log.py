import pytest

from kschedd.store.errors import Gone
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, EventLog, WatchEvent
from kschedd.store.objects.stored import typed
from kschedd.store.store import Store
from tests.store.manifests import Clock, config_map, node


def test_a_watch_gives_old_and_new_of_each_change_in_order() -> None:
    store = Store(now=Clock())
    watch = store.watch()
    first = store.create(config_map("c", a="1"))
    second = store.merge_patch("ConfigMap", "default", "c", {"data": {"a": "2"}})
    store.delete("ConfigMap", "default", "c")
    added, modified, deleted = watch.take()
    assert (added.type, added.old, added.new) == (ADDED, None, first)
    assert (modified.type, modified.old, modified.new) == (MODIFIED, first, second)
    assert (deleted.type, deleted.old) == (DELETED, second)
    assert deleted.new.resource_version == deleted.version == store.version
    assert watch.take() == []


def test_a_watch_of_some_kinds_passes_over_the_others() -> None:
    store = Store(now=Clock())
    watch = store.watch(["Node"])
    store.create(config_map("c"))
    assert watch.behind
    assert watch.take() == []
    assert not watch.behind
    store.create(node())
    assert [event.new.name for event in watch.take()] == ["node-1"]


def test_a_watch_resumes_from_a_version() -> None:
    store = Store(now=Clock())
    store.create(config_map("a"))
    version = store.version
    store.create(config_map("b"))
    store.create(config_map("c"))
    watch = store.watch(None, version)
    assert [event.new.name for event in watch.take(limit=1)] == ["b"]
    assert watch.version == version + 1
    assert [event.new.name for event in store.watch(None, watch.version).take()] == ["c"]


def test_a_version_no_longer_kept_is_gone() -> None:
    store = Store(now=Clock(), history=4)
    for number in range(12):
        store.create(config_map(f"c{number}"))
    with pytest.raises(Gone, match=r"too old resource version: 1 \(\d+\)"):
        store.watch(None, 1)
    assert len(store.watch(None, store.version - 4).take()) == 4


def test_what_a_watcher_has_not_taken_is_kept_for_it() -> None:
    store = Store(now=Clock(), history=4)
    watch = store.watch()
    for number in range(50):
        store.create(config_map(f"c{number}"))
    assert len(watch.take()) == 50
    watch.close()
    late = store.version
    for number in range(50, 70):
        store.create(config_map(f"c{number}"))
    with pytest.raises(Gone):
        store.watch(None, late)


def test_a_watch_knows_how_far_behind_it_is() -> None:
    store = Store(now=Clock())
    watch = store.watch()
    for number in range(3):
        store.create(config_map(f"c{number}"))
    assert watch.lag == 3
    watch.take(limit=2)
    assert watch.lag == 1
    watch.take()
    assert watch.lag == 0


def filled(log: EventLog, events: int) -> EventLog:
    """Append this many events to the log and return it."""
    for version in range(log.version + 1, log.version + events + 1):
        obj = typed("ConfigMap", {**config_map("c"), "metadata": {"name": "c", "resourceVersion": str(version)}})
        log.append(WatchEvent(ADDED, None, obj, version))
    return log


def test_a_log_that_is_to_keep_less_drops_events_when_it_grows() -> None:
    log = filled(EventLog(history=100), 50)
    log.keep(2)
    assert log.used == (50, 50)
    kept, most = filled(log, 4).used
    assert 2 <= kept <= 4
    assert 50 <= most <= 54


def test_a_log_counts_the_events_that_it_keeps_and_kept_at_most() -> None:
    log = EventLog(history=2)
    assert log.used == (0, 0)
    kept, most = filled(log, 8).used
    assert (kept, log.oldest) == (8 - log.oldest, log.version - kept)
    assert 2 <= kept <= most <= 4


def test_watches_see_what_is_shown_and_all_of_it_when_nothing_is_held_back() -> None:
    log = filled(EventLog(), 3)
    log.show(2)
    assert (log.shown, [event.version for event in log.after(0)]) == (2, [1, 2])
    assert [event.version for event in log.written_between(0, 2)] == [1, 2]
    assert [event.version for event in log.written_between(1, 3)] == [2, 3]
    log.show_all()
    assert (log.shown, [event.version for event in log.after(0)]) == (3, [1, 2, 3])


def changes(first: int, many: int) -> list[WatchEvent]:
    made = typed("ConfigMap", {**config_map("c"), "apiVersion": "v1", "kind": "ConfigMap"})
    return [WatchEvent(ADDED, None, made, first + number) for number in range(many)]


def versions(events: list[WatchEvent]) -> list[int]:
    return [event.version for event in events]


def test_a_log_of_events_goes_on_after_the_last_of_them() -> None:
    log = EventLog(5, events=changes(6, 3))
    assert (log.version, log.oldest, log.used) == (8, 5, (3, 3))
    log.append(*changes(9, 1))
    assert versions(log.watch(None, 5).take()) == [6, 7, 8, 9]
    assert versions(log.written_between(6, 8)) == [7, 8]


def test_a_watch_begins_at_the_oldest_version_and_no_earlier() -> None:
    log = EventLog(5, events=changes(6, 1))
    assert versions(log.watch(None, 5).take()) == [6]
    with pytest.raises(Gone):
        log.watch(None, 4)


def test_events_are_dropped_in_steps() -> None:
    log = EventLog(history=4)
    most = 0
    for event in changes(1, 30):
        log.append(event)
        kept, _ = log.used
        assert min(event.version, 4) <= kept < 8
        assert event.version > 7 or kept == event.version, "none is dropped before there are many too many"
        most = max(most, kept)
        assert versions(log.written_after(log.oldest)) == list(range(event.version - kept + 1, event.version + 1))
    assert most == 7, "not one by one"
    assert log.used[1] == 8, "those there were before some were dropped"


def test_more_are_kept_from_now_on() -> None:
    log = EventLog(history=2, patience=2)
    log.keep(10)
    for event in changes(1, 19):
        log.append(event)
    assert log.used[0] == 19, "twice as many, before any is dropped"
    log.append(*changes(20, 1))
    assert log.used[0] == 10


def test_a_watcher_is_waited_for_as_before_where_more_are_kept() -> None:
    log = EventLog(history=2, patience=30)
    slow = log.watch(None, 0)
    log.keep(4)
    for event in changes(1, 25):
        log.append(event)
    assert versions(slow.take()) == list(range(1, 26))


def test_what_is_not_shown_is_kept_however_long_that_takes() -> None:
    log = EventLog(history=2, patience=2)
    log.append(*changes(1, 1))
    log.show(1)
    for event in changes(2, 20):
        log.append(event)
    assert versions(log.written_after(1)) == list(range(2, 22))
    assert versions(log.watch(None, 1).take()) == []
    log.show(3)
    assert versions(log.watch(None, 1).take(limit=9)) == [2, 3]
    with pytest.raises(AssertionError, match="only existing versions can be shown"):
        log.show(22)


def test_what_was_shown_is_not_taken_back() -> None:
    log = EventLog()
    for event in changes(1, 3):
        log.append(event)
    log.show(2)
    log.truncate(2)
    assert (log.version, versions(log.written_after(0))) == (2, [1, 2])
    with pytest.raises(AssertionError, match="events that cursors have seen must remain"):
        log.truncate(1)


def test_a_watcher_that_takes_nothing_is_waited_for_only_so_long() -> None:
    log = EventLog(history=2, patience=6)
    slow = log.watch(None, 0)
    for event in changes(1, 4):
        log.append(event)
    assert versions(slow.take(limit=1)) == [1]
    for event in changes(5, 20):
        log.append(event)
    with pytest.raises(Gone):
        slow.take()
    assert log.used[0] <= 8


def test_a_closed_watch_is_not_waited_for_and_not_read() -> None:
    log = EventLog(history=2)
    gone = log.watch(None, 0)
    gone.close()
    for event in changes(1, 20):
        log.append(event)
    assert log.used[0] < 5
    with pytest.raises(AssertionError, match="this watch was closed"):
        gone.take()


def test_events_of_writes_were_not_loaded() -> None:
    store = Store(now=Clock())
    watch = store.watch()
    store.create(config_map("c"))
    assert [event.loaded for event in watch.take()] == [False]
    assert [event.loaded for event in changes(1, 1)] == [False]


def slices(log: EventLog, many: int) -> EventLog:
    """Append this many versions of an EndpointSlice with 100 endpoints to the log and return it."""
    for version in range(log.version + 1, log.version + many + 1):
        meta = {"name": "s", "namespace": "default", "resourceVersion": str(version)}
        endpoints = [{"addresses": [f"10.0.0.{n}"], "conditions": {"ready": True}} for n in range(100)]
        raw = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta, "endpoints": endpoints}
        log.append(WatchEvent(ADDED, None, typed("EndpointSlice", raw), version))
    return log


def test_large_events_are_dropped_by_their_size() -> None:
    log = slices(EventLog(most_bytes=1 << 20), 200)
    kept, _ = log.used
    held, most = log.bytes_used
    assert 10 < kept < 60
    assert held <= (1 << 20) * 17 / 16 + (1 << 16)
    assert held <= most < 2 << 20
    assert len(log.written_after(log.oldest)) == kept
    assert log.used[0] < slices(EventLog(), 200).used[0] == 200


def test_small_events_are_limited_by_their_number() -> None:
    log = filled(EventLog(history=500, most_bytes=1 << 20), 2_000)
    assert log.used[0] <= 1_000
    assert log.bytes_used[0] == 2_048 * log.used[0]


def test_events_that_a_cursor_needs_are_kept_whatever_their_size() -> None:
    log = EventLog(most_bytes=1 << 20)
    cursor = log.watch(None, 0)
    slices(log, 200)
    assert len(cursor.take()) == 200


def test_sizes_follow_a_rollback() -> None:
    log = slices(EventLog(), 5)
    before = log.bytes_used[0]
    slices(log, 3)
    log.show(5)
    log.truncate(5)
    assert log.bytes_used[0] == before


def test_shared_parts_of_an_object_are_counted_once() -> None:
    store = Store(now=Clock())
    store.create(config_map("c", a="x" * 100_000))
    before = store.history_bytes_used[0]
    assert before > 100_000
    store.merge_patch("ConfigMap", "default", "c", {"metadata": {"labels": {"a": "b"}}})
    assert store.history_bytes_used[0] < before + 10_000


def test_a_log_that_skips_versions_gives_each_event_once() -> None:
    log = EventLog(3)
    names = {4: "a", 5: "b", 90: "c", 91: "d"}
    for version, name in names.items():
        log.skip_to(version - 1)
        made = typed("ConfigMap", config_map(name) | {"metadata": {"name": name, "resourceVersion": str(version)}})
        log.append(WatchEvent(ADDED, None, made, version))
    for since in range(3, 92):
        expected = [version for version in names if version > since]
        assert [event.version for event in log.written_after(since)] == expected
        for limit in (1, 2, 3):
            cursor, taken = log.watch(None, since), []
            while cursor.behind:
                taken += [event.version for event in cursor.take(limit)]
            assert taken == expected
            assert cursor.version == 91
    assert [event.version for event in log.written_between(4, 50)] == [5]
    log.skip_to(200)
    late = log.watch(None, 91)
    assert (late.behind, late.take(1), late.behind) == (True, [], False)
    log.truncate(200)
    assert [event.version for event in log.after(4)] == [5, 90, 91]


def test_a_log_that_skips_versions_drops_the_oldest_events() -> None:
    log = EventLog(history=2, patience=2)
    for version in (1, 2, 50, 51, 90, 91):
        log.skip_to(version - 1)
        made = typed("ConfigMap", config_map("a") | {"metadata": {"name": "a", "resourceVersion": str(version)}})
        log.append(WatchEvent(ADDED, None, made, version))
    assert log.oldest == 51
    assert [event.version for event in log.after(51)] == [90, 91]
    with pytest.raises(Gone):
        log.after(50)
