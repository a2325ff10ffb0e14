"""Tests of which texts are IP addresses or ranges, and of their family."""

import pytest

from kschedd.api.text.ip_addresses import cidr_family, ip_address


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("010.01.2.3", "10.1.2.3"),
        ("::1", "::1"),
        ("fe80::1%eth0", None),
        ("256.1.1.1", None),
        ("1.2.3", None),
        ("", None),
        ("a", None),
    ],
)
def test_addresses(text: str, canonical: str | None) -> None:
    found = ip_address(text)
    assert (None if found is None else str(found)) == canonical


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("10.0.0.0/24", 4),
        ("10.0.0.5/24", 4),
        ("010.0.0.0/08", 4),
        ("fd00::/64", 6),
        ("::ffff:10.0.0.0/120", 4),
        ("10.0.0.0/33", 0),
        ("10.0.0.0/255.0.0.0", 0),
        ("10.0.0.0", 0),
        ("10.0.0.0/", 0),
        ("x", 0),
    ],
)
def test_ranges(text: str, family: int) -> None:
    assert cidr_family(text) == family
