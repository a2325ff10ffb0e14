"""Tests of arguments that cannot be sent: they are reported as the caller's fault."""

import pytest

from kschedd.rpc.client_common import request_bytes
from kschedd.service.errors import RpcError


@pytest.mark.parametrize(
    ("value", "why"),
    [
        pytest.param(2**64, "18446744073709551616: a whole number of at most 64 bits is expected", id="too-big"),
        pytest.param({"a": [-(2**63) - 1]}, "-9223372036854775809: a whole number", id="too-small-within"),
        pytest.param("\udcff", "surrogates not allowed", id="no-text"),
    ],
)
def test_a_parameter_that_cannot_be_sent_is_refused(value: object, why: str) -> None:
    with pytest.raises(RpcError) as refused:
        request_bytes(1, "scheduler.set_weight", [{"weight": value}])
    assert refused.value.code == "bad_params"
    assert str(refused.value).startswith("scheduler.set_weight: ")
    assert why in str(refused.value)
