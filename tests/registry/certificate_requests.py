"""A certification request as openssl writes it: of `CN=u, O=g`, with an ECDSA key."""

import base64
import textwrap

DER = base64.b64decode(
    "MIHTMHoCAQAwGDEKMAgGA1UEAwwBdTEKMAgGA1UECgwBZzBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABG2ECLyM6yX9odliRW075rh7RUb4pCuqsxut"
    "cb30OfGaxL4AK3t3x+PzZosrYwW11BxFVGsfDJzPKMu3I+8EUF2gADAKBggqhkjOPQQDAgNJADBGAiEAolTNwW/zJV8Y73jvx+UhcCa+T4LS3IN+aoZv"
    "vYtcs0cCIQDEfWZjMD+W/0LOpkrcmHKhp0U/ACgrhlaRlON7rvdTFA=="
)


def armored(kind: str, der: bytes = DER, headers: str = "") -> str:
    """Return a PEM block encoded in base64, as in an API object."""
    body = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64))
    return base64.b64encode(f"-----BEGIN {kind}-----\n{headers}{body}\n-----END {kind}-----\n".encode()).decode()


REQUEST = armored("CERTIFICATE REQUEST")
