"""Tests of warnings about IP addresses and ranges, with upstream's TestGetWarningsForIP and TestGetWarningsForCIDR."""

import pytest

from kschedd.registry.warnings.addresses import address_warnings, range_warnings
from kschedd.registry.warnings.pods import pod_warnings

_FUTURE = "will be considered invalid in a future Kubernetes release"


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("192.12.2.2", []),
        ("2001:db8::2", []),
        ("192.012.2.2", [f'p: non-standard IP address "192.012.2.2" {_FUTURE}: use "192.12.2.2"']),
        ("::ffff:192.12.2.2", [f'p: non-standard IP address "::ffff:192.12.2.2" {_FUTURE}: use "192.12.2.2"']),
        (
            "2001:db8:0:0::2",
            ['p: IPv6 address "2001:db8:0:0::2" should be in RFC 5952 canonical format ("2001:db8::2")'],
        ),
        ("none", []),  # validation refuses it
    ],
)
def test_addresses(text: str, warnings: list[str]) -> None:
    assert list(address_warnings(text, "p")) == warnings


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("192.12.2.0/24", []),
        ("2001:db8::/64", []),
        ("192.12.2.0/024", [f'p: non-standard CIDR value "192.12.2.0/024" {_FUTURE}: use "192.12.2.0/24"']),
        ("192.012.2.0/24", [f'p: non-standard CIDR value "192.012.2.0/24" {_FUTURE}: use "192.12.2.0/24"']),
        (
            "::ffff:192.12.2.0/120",
            [f'p: non-standard CIDR value "::ffff:192.12.2.0/120" {_FUTURE}: use "192.12.2.0/24"'],
        ),
        (
            "192.12.2.8/24",
            [
                'p: CIDR value "192.12.2.8/24" is ambiguous in this context '
                '(should be "192.12.2.0/24" or "192.12.2.8/32"?)'
            ],
        ),
        (
            "192.012.2.8/24",
            [
                'p: CIDR value "192.012.2.8/24" is ambiguous in this context '
                '(should be "192.12.2.0/24" or "192.12.2.8/32"?)',
                f'p: non-standard CIDR value "192.012.2.8/24" {_FUTURE}: use "192.12.2.0/24"',
            ],
        ),
        (
            "2001:db8:0:0::/64",
            ['p: IPv6 CIDR value "2001:db8:0:0::/64" should be in RFC 5952 canonical format ("2001:db8::/64")'],
        ),
        ("192.12.2.0", []),  # validation refuses it
    ],
)
def test_ranges(text: str, warnings: list[str]) -> None:
    assert list(range_warnings(text, "p")) == warnings


def test_pods_are_warned_of_name_servers_and_host_aliases() -> None:
    spec = {"dnsConfig": {"nameservers": ["1.2.3.4", "05.06.07.08"]}, "hostAliases": [{"ip": "::ffff:1.2.3.4"}]}
    assert list(pod_warnings(spec, {}, "spec.template")) == [
        f'spec.template.spec.dnsConfig.nameservers[1]: non-standard IP address "05.06.07.08" {_FUTURE}: use "5.6.7.8"',
        f'spec.template.spec.hostAliases[0].ip: non-standard IP address "::ffff:1.2.3.4" {_FUTURE}: use "1.2.3.4"',
    ]
