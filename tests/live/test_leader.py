"""Tests of leader election: the state machine alone, and several schedulers of one cluster."""

from pathlib import Path
from typing import Any

import pytest

from kschedd.config.model import LeaderElection
from kschedd.live.leader import Election
from tests.apiserver.asking import pod
from tests.live.real_cluster import ALONE, QUICK, Real, bound, real_cluster, scheduler_of
from tests.live.scripted_server import ServedRequest, scripted
from tests.live.test_mirror import until
from tests.live.test_refusals import OnePod, is_held_as_bound

Raw = dict[str, Any]

AT = "2025-01-01T00:00:00.000000Z"
LATER = "2025-01-01T00:00:05.000000Z"


def lease(holder: str, seconds: int = 15, transitions: int = 3, renewed: str = AT) -> Raw:
    return {
        "metadata": {"name": "kube-scheduler", "resourceVersion": "7"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": seconds,
            "acquireTime": AT,
            "renewTime": renewed,
            "leaseTransitions": transitions,
        },
    }


def election() -> Election:
    return Election(LeaderElection(), "me")


def test_a_lease_that_is_not_there_is_created() -> None:
    one = election()
    one.observe(None, 0)
    assert one.may_take(0)
    assert not one.exists
    wanted = one.wanted(AT)
    assert wanted["spec"] == lease("me", transitions=0)["spec"]
    assert wanted["metadata"] == {"name": "kube-scheduler", "namespace": "kube-system"}


def test_a_lease_of_another_is_taken_when_no_renewal_was_seen_for_its_duration() -> None:
    """Compare only times of the observer's own clock; ignore the times in the Lease."""
    one = election()
    one.observe(lease("other"), 100)
    assert not one.may_take(100)
    one.observe(lease("other"), 114)
    assert not one.may_take(114)
    one.observe(lease("other", renewed=LATER), 114.5)
    assert not one.may_take(129)
    assert one.may_take(129.5)
    assert one.wanted(AT)["spec"]["leaseTransitions"] == 4
    assert one.wanted(AT)["metadata"]["resourceVersion"] == "7", "only if nobody else has taken it meanwhile"


def test_a_lease_that_was_let_go_is_taken_at_once() -> None:
    one = election()
    one.observe(lease("", 1), 100)
    assert one.may_take(100)


def test_a_renewal_keeps_when_it_was_acquired() -> None:
    one = election()
    one.observe(lease("other"), 0)
    one.taken(lease("me", transitions=4), 20)
    assert one.leads
    wanted = one.wanted(LATER)["spec"]
    assert (wanted["acquireTime"], wanted["renewTime"], wanted["leaseTransitions"]) == (AT, LATER, 4)


def test_it_no_longer_leads_once_it_could_not_renew_in_time() -> None:
    one = election()
    one.taken(lease("me"), 100)
    assert not one.has_lost(109.9)
    assert one.has_lost(110) == "the lease could not be renewed for 10 s"


def test_it_no_longer_leads_once_another_holds_the_lease() -> None:
    one = election()
    one.taken(lease("me"), 100)
    one.observe(lease("other"), 101)
    assert one.has_lost(101) == "other holds the lease"


def test_who_was_cut_off_goes_on_where_nobody_has_taken_the_lease() -> None:
    one = election()
    one.taken(lease("me"), 100)
    one.stop()
    one.observe(lease("me"), 112)
    assert one.may_take(112)
    assert one.wanted(LATER)["spec"]["leaseTransitions"] == 3


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        {},
        {"holderIdentity": None},
        {"holderIdentity": 3, "leaseDurationSeconds": "x", "leaseTransitions": "y"},
        {"holderIdentity": "other", "leaseDurationSeconds": None},
        {"holderIdentity": "other", "leaseDurationSeconds": [15], "leaseTransitions": {}},
        {"holderIdentity": "", "leaseDurationSeconds": 10**400, "leaseTransitions": 10**400},
        {"holderIdentity": "other", "leaseDurationSeconds": -(10**400), "leaseTransitions": -3},
    ],
)
def test_a_lease_of_nobody_in_particular_is_taken(spec: Any) -> None:
    one = election()
    one.observe({"metadata": {"name": "x"}, "spec": spec}, 100)
    assert one.may_take(100)
    assert one.wanted(AT)["spec"]["holderIdentity"] == "me"
    assert one.wanted(AT)["spec"]["leaseTransitions"] in (0, 1)


def test_a_lease_for_longer_than_any_number_is_not_taken() -> None:
    one = election()
    one.observe(lease("other", seconds=10**400), 100)
    assert not one.may_take(1e9)
    assert one.may_take(2**31 + 100)


async def the_lease(real: Real) -> Raw:
    return dict((await real.cluster.store.get("Lease", "kube-system", "kube-scheduler")).spec)


async def test_the_one_that_leads_schedules_and_lets_the_other_lead_at_its_end(tmp_path: Path) -> None:
    async with real_cluster() as real, scheduler_of(tmp_path, real.port, QUICK) as second:
        second_leads = second.leads
        await until(second_leads)
        async with scheduler_of(tmp_path, real.port, QUICK) as third:

            async def third_sees_it() -> bool:
                return third.remote.leader.describe().leader == second.remote.leader.election.identity

            await until(third_sees_it)
            await real.cluster.store.create(pod("a"))
            await bound(real, "a")
            assert await third.cluster.log.query(lambda log: len(log.attempts())) == 0
            assert await second.cluster.log.query(lambda log: len(log.attempts())) == 1
            assert not await third.leads()
        assert (await the_lease(real))["holderIdentity"] == second.remote.leader.election.identity


async def test_a_lease_is_let_go_at_an_ordered_end(tmp_path: Path) -> None:
    async with real_cluster() as real:
        async with scheduler_of(tmp_path, real.port, QUICK) as scheduler:
            await until(scheduler.leads)
            assert (await the_lease(real))["holderIdentity"] == scheduler.remote.leader.election.identity
        left = await the_lease(real)
        assert (left["holderIdentity"], left["leaseDurationSeconds"]) == ("", 1)
        async with scheduler_of(tmp_path, real.port, QUICK) as scheduler:
            await until(scheduler.leads)
            assert (await the_lease(real))["leaseTransitions"] == 1


async def test_another_takes_over_when_the_first_is_killed(tmp_path: Path) -> None:
    short = LeaderElection(lease_duration_s=2.0, renew_deadline_s=1.0, retry_period_s=0.1)
    async with real_cluster() as real:
        async with scheduler_of(tmp_path, real.port, short) as first:
            await until(first.leads)
            identity = first.remote.leader.election.identity
            first.remote.leader.election.stop()  # so that it does not release the lease
        assert (await the_lease(real))["holderIdentity"] == identity
        async with scheduler_of(tmp_path, real.port, QUICK) as second:
            await real.cluster.store.create(pod("a"))
            await bound(real, "a")
            assert await second.leads()


async def test_who_loses_the_lease_schedules_no_more_and_again_once_it_is_free(tmp_path: Path) -> None:
    async with real_cluster() as real, scheduler_of(tmp_path, real.port, QUICK) as scheduler:
        await until(scheduler.leads)
        patch = {"spec": {"holderIdentity": "other", "leaseDurationSeconds": 3600}}
        await real.cluster.store.patch("Lease", "kube-system", "kube-scheduler", patch)

        async def has_lost() -> bool:
            return not await scheduler.leads()

        await until(has_lost)
        assert scheduler.remote.leader.describe().leader == "other"
        await real.cluster.store.create(pod("a"))

        async def waits() -> bool:
            return await scheduler.cluster.queue.query(lambda owner: sum(owner.queue.counts().values())) == 1

        await until(waits)
        assert await scheduler.cluster.log.query(lambda log: len(log.attempts())) == 0
        patch = {"spec": {"holderIdentity": ""}}
        await real.cluster.store.patch("Lease", "kube-system", "kube-scheduler", patch)
        await bound(real, "a")


async def test_without_election_it_schedules_at_once_and_asks_for_no_lease(tmp_path: Path) -> None:
    async with real_cluster() as real, scheduler_of(tmp_path, real.port, ALONE):
        await real.cluster.store.create(pod("a"))
        await bound(real, "a")
        assert await real.cluster.store.find("Lease", "kube-system", "kube-scheduler") is None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"metadata": {"name": "x"}, "spec": None}, id="no-spec"),
        pytest.param({"metadata": 3, "spec": 3}, id="no-object"),
        pytest.param({}, id="empty"),
    ],
)
async def test_an_odd_lease_ends_nothing(tmp_path: Path, body: Raw) -> None:
    cluster = OnePod([])

    async def script(request: ServedRequest) -> None:
        if request.plural in ("leases", "kube-scheduler"):
            await request.answer(body)
        else:
            await cluster.script(request)

    async with scripted(script) as url, scheduler_of(tmp_path, int(url.rpartition(":")[2]), QUICK) as scheduler:
        await until(is_held_as_bound(scheduler.cluster))


@pytest.mark.parametrize("code", [401, 403, 500])
async def test_without_the_lease_nothing_is_scheduled(tmp_path: Path, code: int) -> None:
    cluster = OnePod([])
    asked_for = 0

    async def script(request: ServedRequest) -> None:
        nonlocal asked_for
        if request.plural in ("leases", "kube-scheduler"):
            asked_for += 1
            await request.refuse(code, "leases is forbidden")
        else:
            await cluster.script(request)

    async with scripted(script) as url, scheduler_of(tmp_path, int(url.rpartition(":")[2]), QUICK) as scheduler:

        async def is_asked_again() -> bool:
            return asked_for > 3

        await until(is_asked_again)
        assert not await scheduler.leads()
    assert not cluster.bound_to
