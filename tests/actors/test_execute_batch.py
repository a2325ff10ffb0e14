"""Plans of a batch are executed in order and independently; plans with only a binding are executed together."""

import attrs

from kschedd.actors.scheduler.binding import execute_batch
from kschedd.api.pods import Pod
from kschedd.framework.writes import Bind, MergePatch, Plan, Write
from kschedd.scheduling.binding.cycle import ExecutePlan
from kschedd.store.store import Store
from tests.store.manifests import pod


def plan(name: str, *before: Write, uid: str = "") -> ExecutePlan:
    return ExecutePlan(f"uid-{name}", Plan((*before, Bind("default", name, uid, "node-1"))))


def test_plans_are_executed_in_order_and_each_is_answered() -> None:
    store = Store(now=lambda: 0.0)
    store.create_many([pod(name) for name in "abcde"])
    began = store.version
    noted = MergePatch("Pod", "default", "c", {"metadata": {"annotations": {"a": "b"}}})
    plans = [plan("a"), plan("missing"), plan("b", uid="other"), plan("c", noted), plan("d"), plan("e")]
    answered = execute_batch((), plans, store)
    assert [uid for uid, _ in answered.plans] == [wanted.uid for wanted in plans]
    assert [None if status is None else status.message for _, status in answered.plans] == [
        None,
        'pods "missing" not found',
        'Operation cannot be fulfilled on pods "b": Precondition failed: UID in precondition: other, '
        f"UID in object meta: {store.get('Pod', 'default', 'b').uid}",
        None,
        None,
        None,
    ]
    written = [(event.new.name, getattr(event.new, "node_name", "")) for event in store.written_after(began)]
    assert written == [("a", "node-1"), ("c", ""), ("c", "node-1"), ("d", "node-1"), ("e", "node-1")]


def test_the_first_write_that_is_refused_ends_its_plan_only() -> None:
    store = Store(now=lambda: 0.0)
    store.create_many([pod(name) for name in "ab"])
    nowhere = MergePatch("Pod", "default", "nobody", {"metadata": {}})
    answered = execute_batch((), [plan("a", nowhere), plan("b")], store)
    assert [status is None for _, status in answered.plans] == [False, True]
    assert [found.name for found in store.pods_on("node-1")] == ["b"]


def test_a_pod_that_cannot_be_handled_keeps_no_other_from_being_bound() -> None:
    store = Store(now=lambda: 0.0)
    made = store.create_many([pod(name) for name in "abc"])[1]
    assert isinstance(made, Pod)
    store.take_over(attrs.evolve(made, raw={**made.raw, "spec": 7}))
    answered = execute_batch((), [plan(name) for name in "abc"], store)
    failed = [status and status.message.partition(" (")[0] for _, status in answered.plans]
    assert failed == [None, "TypeError: 'int' object is not a mapping", None]
    assert [found.name for found in store.pods_on("node-1")] == ["a", "c"]
