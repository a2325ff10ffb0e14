"""Tests that sums in quotas can be parsed, however large the quantities are."""

import pytest

from kschedd.api.quantity import nanos
from kschedd.store.admission_plugins.quantities import plus
from kschedd.store.errors import Invalid
from kschedd.store.store import Store


@pytest.mark.parametrize("one", ["1e300", "1e600", "9" * 250 + "e6"])
def test_a_sum_is_read_again(one: str) -> None:
    total = plus(one, "1")
    assert nanos(total) == nanos(one) + nanos("1")
    assert nanos(plus(total, one)) == nanos(total) + nanos(one)


def test_longer_than_anybody_writes_is_refused() -> None:
    hard = {"requests.memory": "1" * 257}
    meta = {"name": "q", "namespace": "default"}
    with pytest.raises(Invalid, match=r"257 characters"):
        Store().create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}})
