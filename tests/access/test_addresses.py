"""Tests of valid and invalid listen addresses."""

import pytest

from kschedd.access.addresses import Address, read_address
from kschedd.access.errors import AccessError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8001", Address("127.0.0.1", 8001)),
        ("8001", Address("127.0.0.1", 8001)),
        (":0", Address("127.0.0.1", 0)),
        ("[::1]:8001", Address("::1", 8001)),
        ("0.0.0.0:6443", Address("0.0.0.0", 6443)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize("text", ["", "localhost", "localhost:http", "a:70000", "1.2.3.4:-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(AccessError, match="HOST:PORT"):
        read_address(text)
