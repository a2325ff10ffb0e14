"""Tests of the choice of a proxy by environment variables, which equals that of kubectl."""

from urllib.parse import urlsplit

import pytest

from kschedd.http.proxies import proxy_of

PROXY = {"HTTPS_PROXY": "http://proxy:3128", "http_proxy": "plain:80"}


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        pytest.param("https://api.example.com", PROXY, "http://proxy:3128", id="by-scheme"),
        pytest.param("http://api.example.com", PROXY, "http://plain:80", id="without-scheme-it-is-http"),
        pytest.param("https://api.example.com", {}, "", id="none"),
        pytest.param("https://a", {"ALL_PROXY": "http://all:1"}, "http://all:1", id="for-all-schemes"),
        pytest.param("https://a", {"HTTPS_PROXY": "http://a:1", "https_proxy": "http://b:1"}, "http://b:1", id="lower"),
        pytest.param("https://127.0.0.1:6443", PROXY, "", id="loopback-address"),
        pytest.param("https://localhost:6443", PROXY, "", id="localhost"),
        pytest.param("https://[::1]:6443", PROXY, "", id="loopback-of-ipv6"),
        pytest.param("https://api.example.com", PROXY | {"NO_PROXY": "*"}, "", id="no-proxy-at-all"),
        pytest.param("https://api.example.com", PROXY | {"no_proxy": "x, example.com"}, "", id="domain"),
        pytest.param("https://example.com", PROXY | {"NO_PROXY": "Example.com"}, "", id="host"),
        pytest.param("https://api.example.com", PROXY | {"NO_PROXY": ".example.com"}, "", id="subdomains"),
        pytest.param("https://example.com", PROXY | {"NO_PROXY": ".example.com"}, "http://proxy:3128", id="only-those"),
        pytest.param("https://myexample.com", PROXY | {"NO_PROXY": "example.com"}, "http://proxy:3128", id="other"),
        pytest.param("https://10.1.2.3", PROXY | {"NO_PROXY": "10.0.0.0/8"}, "", id="range"),
        pytest.param("https://11.1.2.3", PROXY | {"NO_PROXY": "10.0.0.0/8"}, "http://proxy:3128", id="out-of-range"),
        pytest.param("https://a:6443", PROXY | {"NO_PROXY": "a:6443"}, "", id="port"),
        pytest.param("https://a:6443", PROXY | {"NO_PROXY": "a:443"}, "http://proxy:3128", id="other-port"),
    ],
)
def test_the_proxy_of_a_url(url: str, environ: dict[str, str], proxy: str) -> None:
    assert proxy_of(urlsplit(url), environ) == proxy
