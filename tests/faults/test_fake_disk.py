"""Tests that the fake disk gives the same results as a real disk, and loses only data that a real disk may lose."""

import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.store.journal.disk import Disk, RealDisk
from kschedd.store.journal.journal import Journal
from kschedd.store.store import Store
from tests.faults.fake_disk import SECTOR, FakeDisk
from tests.store.manifests import Clock, config_map

NAMES = ("a", "b", "c")
names = st.sampled_from(NAMES)
steps = st.one_of(
    st.tuples(st.just("open"), names),
    st.tuples(st.just("close"), st.integers(0, 3)),
    st.tuples(st.just("pwrite"), st.integers(0, 3), st.binary(max_size=20), st.integers(0, 30)),
    st.tuples(st.just("pread"), st.integers(0, 3), st.integers(0, 40), st.integers(0, 40)),
    st.tuples(st.just("fdatasync"), st.integers(0, 3)),
    st.tuples(st.sampled_from(("read", "unlink", "status", "make_private", "flush")), names),
    st.tuples(st.sampled_from(("copy", "link", "replace")), names, names).filter(lambda step: step[1] != step[2]),
)


def done(disk: Disk, folder: Path, script: list[tuple[Any, ...]]) -> list[object]:
    """Run the script and return the outcome of each step: its result, or the errno of its error."""
    came: list[object] = []
    descriptors: list[int] = []
    inodes: dict[tuple[int, int], int] = {}
    for what, *args in script:
        if what in ("close", "pwrite", "pread", "fdatasync"):
            if args[0] >= len(descriptors):
                continue
            given_ = [descriptors.pop(args[0]) if what == "close" else descriptors[args[0]], *args[1:]]
        else:
            given_ = [folder / arg for arg in args]
        try:
            result = getattr(disk, what)(*given_)
        except OSError as error:
            came.append(error.errno)
            continue
        if what == "open":
            descriptors.append(result)
        # Compare whether two files are the same, not their inode numbers.
        elif what == "status" and result is not None:
            came.append((inodes.setdefault(result.inode, len(inodes)), result.size, result.is_regular))
        else:
            came.append(result)
    for descriptor in descriptors:
        disk.close(descriptor)
    return came


@given(script=st.lists(steps, max_size=30))
@settings(max_examples=100, deadline=None)
def test_the_fake_disk_does_what_the_real_one_does(script: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as real:
        folder = Path(real)
        assert done(FakeDisk(random.Random(0)), folder, script) == done(RealDisk(), folder, script)


@pytest.mark.parametrize("seed", range(6))
def test_a_journal_on_the_fake_disk_is_as_one_on_the_real_disk(tmp_path: Path, seed: int) -> None:
    found = []
    for disk in (FakeDisk(random.Random(seed)), RealDisk()):
        chance, path, store = random.Random(seed), tmp_path / "journal.db", Store(now=Clock(), seed=seed)
        journal = Journal(path, disk=disk)
        journal.append(store.written_after(0))
        for number in range(60):
            name = f"c{chance.randrange(10)}"
            if store.find("ConfigMap", "default", name) is None:
                store.create(config_map(name, number=str(number)))
            else:
                store.delete("ConfigMap", "default", name)
            journal.append(store.written_after(journal.version))
            if chance.random() < 0.1:
                journal.compact_some(chance.randrange(1, 20))
            if chance.random() < 0.05:
                journal.close()
                journal = Journal(path, disk=disk)
        journal.compact()
        again = journal.load(now=Clock(), seed=seed)
        journal.close()
        assert again is not None
        sizes = [disk.status(path.with_name(f"journal.db{suffix}")) for suffix in ("", "-head", "-wal")]
        objects = [obj.raw for kind in again.kinds() for obj in again.list(kind)]
        found.append((again.version, objects, [status and status.size for status in sizes]))
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(8))
def test_what_a_killed_daemon_has_not_flushed_and_the_next_one_reads_is_there_after_a_loss_of_power(seed: int) -> None:
    disk, path, store = FakeDisk(random.Random(seed)), Path("/journal.db"), Store(now=Clock())
    journal = Journal(path, disk=disk)
    disk.lies = True  # so that the process is killed after the write and before the flush
    store.create(config_map("on-its-way"))
    journal.append(store.written_after(0))
    _kill(disk, journal, power_lost=False)
    disk.lies = False
    journal = Journal(path, disk=disk)
    assert journal.version == store.version
    _kill(disk, journal, power_lost=True)
    journal = Journal(path, disk=disk)
    assert journal.version == store.version
    journal.close()


def _kill(disk: FakeDisk, journal: Journal, *, power_lost: bool) -> None:
    disk.kill()
    journal.close()
    disk.restart(power_lost=power_lost)


def written(disk: FakeDisk, data: bytes, *, flushed: bool) -> bytes:
    """Write data, lose power, and return the data that can be read afterwards."""
    path = Path("/file")
    descriptor = disk.open(path)
    disk.fdatasync(descriptor)
    disk.pwrite(descriptor, data, 0)
    if flushed:
        disk.fdatasync(descriptor)
    disk.kill()
    with pytest.raises(OSError, match="killed"):
        disk.pwrite(descriptor, b"more", 0)
    disk.restart(power_lost=True)
    return disk.read(path)


DATA = bytes(range(256)) * 8


@pytest.mark.parametrize("seed", range(20))
def test_what_was_flushed_is_there_after_the_power_was_lost(seed: int) -> None:
    assert written(FakeDisk(random.Random(seed)), DATA, flushed=True) == DATA


def test_what_was_not_flushed_may_be_there_or_not_or_in_sectors() -> None:
    found = [written(FakeDisk(random.Random(seed)), DATA, flushed=False) for seed in range(60)]
    assert {b"", DATA} < set(found)
    torn = [data for data in found if data not in (b"", DATA)]
    assert torn
    for data in torn:
        sectors = [(data[at : at + SECTOR], DATA[at : at + SECTOR]) for at in range(0, len(data), SECTOR)]
        assert all(there in (bytes(len(there)), was) for there, was in sectors)


def test_a_disk_that_lies_says_that_it_has_flushed() -> None:
    lying = [FakeDisk(random.Random(seed), lies=True) for seed in range(30)]
    assert any(Path("/file") not in disk.names or disk.read(Path("/file")) != DATA for disk in lying if _kept(disk))


def _kept(disk: FakeDisk) -> bool:
    descriptor = disk.open(Path("/file"))
    disk.pwrite(descriptor, DATA, 0)
    disk.fdatasync(descriptor)
    disk.restart(power_lost=True)
    return True


@pytest.mark.parametrize(
    ("fault", "number"),
    [
        pytest.param(lambda disk: setattr(disk, "error", 5), 5, id="an-error"),
        pytest.param(lambda disk: setattr(disk, "capacity", 100), 28, id="full"),
    ],
)
def test_a_write_that_fails_changes_nothing(fault: Callable[[FakeDisk], None], number: int) -> None:
    disk = FakeDisk(random.Random(0))
    descriptor = disk.open(Path("/file"))
    fault(disk)
    with pytest.raises(OSError, match=os.strerror(number)):
        disk.pwrite(descriptor, DATA, 0)
    assert disk.read(Path("/file")) == b""


def test_a_flipped_bit_is_one_bit() -> None:
    disk = FakeDisk(random.Random(0))
    disk.pwrite(disk.open(Path("/file")), DATA, 0)
    disk.flip_bit()
    differing = [(was ^ there).bit_count() for was, there in zip(DATA, disk.read(Path("/file")), strict=True)]
    assert sum(differing) == 1
