"""Names of container images: parsing of the tag, which determines the default pull policy.

Source: Kubernetes v1.34, pkg/util/parsers/parsers.go (ParseImageName); github.com/distribution/reference v0.6.0,
normalize.go and regexp.go.
"""

import re
from functools import lru_cache
from typing import Final

_LONGEST_PATH: Final = 255
_COMPONENT: Final = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST_PART: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN: Final = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE: Final = re.compile(
    rf"(?P<domain>{_DOMAIN})/(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>[A-Za-z0-9]+(?:[-_+.][A-Za-z0-9]+)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_IDENTIFIER: Final = re.compile("[a-f0-9]{64}")
_DIGEST_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}  # in hexadecimal digits


@lru_cache(1 << 10)
def image_pull_policy(image: str) -> str:
    """Return Always for the tag latest or for no tag and digest; otherwise, or if the name is invalid, IfNotPresent."""
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def image_tag(image: str) -> str:
    """Return the tag: "latest" without tag and digest; "" for a digest without tag, or for an invalid name."""
    if _IDENTIFIER.fullmatch(image):
        return ""
    domain, slash, path = image.partition("/")
    if not slash or not (domain == "localhost" or domain != domain.lower() or any(sign in domain for sign in ".:")):
        domain, path = "docker.io", image
    if domain in ("docker.io", "index.docker.io") and "/" not in path:
        path = f"library/{path}"
    found = _REFERENCE.fullmatch(f"{domain}/{path}")
    if found is None or len(found["path"]) > _LONGEST_PATH or not _is_digest(found["digest"]):
        return ""
    return found["tag"] or ("" if found["digest"] else "latest")


def _is_digest(digest: str | None) -> bool:
    """Return whether the digest is absent or has a known algorithm."""
    if digest is None:
        return True
    algorithm, _, encoded = digest.partition(":")
    return len(encoded) == _DIGEST_LENGTHS.get(algorithm) and encoded == encoded.lower()
