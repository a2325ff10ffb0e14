"""Tests of reproducible generated uids and names."""

from uuid import UUID

from kschedd.store.prototypes.generated import Generated
from kschedd.store.store import Store
from kschedd.values import run_steps
from tests.store.manifests import pod


def made(generated: Generated) -> list[str]:
    return [generated.uid("Pod"), generated.name("Pod", "web-", ()), generated.uid("Event")]


def test_the_same_seed_and_version_make_the_same() -> None:
    assert made(Generated(7, 3)) == made(Generated(7, 3))
    assert made(Generated(7, 3)) != made(Generated(8, 3))
    again = Generated(7, 0)
    again.begin_at(3)
    assert made(again) == made(Generated(7, 3))


def test_what_is_written_about_others_changes_no_other_names() -> None:
    one, other = Generated(0, 0), Generated(0, 0)
    for _ in range(5):
        other.uid("Event")
        other.name("Lease", "lease-", ())
    assert one.uid("Pod") == other.uid("Pod")


def test_a_fork_makes_what_the_store_is_about_to_make() -> None:
    one, fork = Generated(0, 0), Generated(0, 0)
    made(one)
    fork.go_on_as(one)
    assert made(fork) == made(one)


def test_a_name_that_is_taken_is_not_made() -> None:
    taken = {Generated(0, 0).name("Pod", "web-", ())}
    assert Generated(0, 0).name("Pod", "web-", taken) not in taken


def test_a_long_base_is_cut_so_that_the_name_has_63_characters() -> None:
    name = Generated(0, 0).name("Pod", "b" * 100, ())
    assert (len(name), name[:58]) == (63, "b" * 58)


def test_a_uid_is_one_of_version_4() -> None:
    assert UUID(Generated(0, 0).uid("Pod")).version == 4


def test_a_store_does_not_generate_the_uids_of_a_dump_again() -> None:
    dumped, store, again = Store(seed=3), Store(seed=3), Store(seed=3)
    pods = [dumped.create(pod(name)) for name in ("a", "b", "c")]
    for each in (store, again):
        run_steps(each.take_in(pods[1:]))
    fork = store.fork()
    new = [store.create(pod(name)).uid for name in ("x", "y", "z")]
    assert new == [again.create(pod(name)).uid for name in ("x", "y", "z")]
    assert not {each.uid for each in pods} & {*new, *(fork.create(pod(name)).uid for name in ("x", "y", "z"))}
