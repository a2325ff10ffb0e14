"""Tests of the objects with which a new cluster starts, and of the options that depend on its origin."""

import argparse
from pathlib import Path

import pytest

from kschedd.actors.clock import Clock as DaemonClock
from kschedd.api.simulation.standard_class import STANDARD_CLASS, is_standard_class
from kschedd.commands.run import add_parser, daemon_options
from kschedd.config.loading.load import default_config
from kschedd.startup.options import DaemonOptions, has_accounts
from kschedd.startup.state import StateOptions, open_store
from kschedd.store.errors import ApiError
from kschedd.store.store import Store
from tests.store.manifests import Clock


def classes(state: StateOptions) -> list[str]:
    journal, store = open_store(state, DaemonClock.started(), 1, default_config().rules)
    found, before = [each.name for each in store.list("StorageClass")], store.version
    if journal is not None:
        for name in found:
            store.delete("StorageClass", "", name)
        journal.append(store.written_after(before))
        journal.close()
    return found


async def test_only_a_new_cluster_gets_the_default_storage_class(tmp_path: Path) -> None:
    assert classes(StateOptions(default_class=True)) == ["standard"]
    assert classes(StateOptions()) == []
    kept = StateOptions(journal=tmp_path / "journal.db", default_class=True)
    assert classes(kept) == ["standard"]
    assert classes(kept) == [], "a class that a user has deleted does not return"


def test_a_manifest_may_replace_the_default_class_once() -> None:
    store = Store(now=Clock())
    store.create(STANDARD_CLASS)
    own = {"provisioner": "disks.example.com", "volumeBindingMode": "Immediate", "parameters": {"type": "ssd"}}
    store.merge_patch("StorageClass", "", "standard", own)
    assert not is_standard_class(store.get("StorageClass", "", "standard").raw)
    with pytest.raises(ApiError, match="updates to provisioner are forbidden"):
        store.merge_patch("StorageClass", "", "standard", {"provisioner": "other.example.com"})


def options(*words: str) -> DaemonOptions:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return daemon_options(parser.parse_args(["run", *words]))


@pytest.mark.parametrize(
    ("words", "own"),
    [
        pytest.param((), True, id="new"),
        pytest.param(("--from", "dump.json"), False, id="dump"),
        pytest.param(("--mirror",), False, id="mirror"),
        pytest.param(("--without", "controllers"), False, id="other-controllers"),
    ],
)
def test_only_a_cluster_of_its_own_is_completed(words: tuple[str, ...], own: bool) -> None:
    found = options(*words)
    behavior = found.controller_options.pod_behavior
    assert (found.default_class, has_accounts(found)) == (own, own)
    assert (behavior is not None and behavior.waits_for_configuration) is own


def test_a_restart_without_the_dump_keeps_its_defaults(tmp_path: Path) -> None:
    before = options("--state", str(tmp_path))
    (tmp_path / "from-dump").touch()
    after = options("--state", str(tmp_path))
    for found, own in ((before, True), (after, False)):
        behavior = found.controller_options.pod_behavior
        assert behavior is not None
        assert (behavior.finish_jobs_s is not None) is own
        assert (found.copied, has_accounts(found)) == (not own, own)


def test_the_flags_take_precedence() -> None:
    assert not options("--no-default-storage-class").default_class
    for words, waits in ((("ignore",), False), (("wait", "--from", "d"), True)):
        behavior = options("--missing-configuration", *words).controller_options.pod_behavior
        assert behavior is not None
        assert behavior.waits_for_configuration is waits
