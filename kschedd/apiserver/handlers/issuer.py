"""The discovery documents of the issuer of ServiceAccount tokens: `/.well-known/openid-configuration`, the keys.

The daemon signs tokens with a secret (HS256), so there is no public key with which another program could verify them.

Source: Kubernetes v1.37, pkg/serviceaccount/openidmetadata.go.
"""

from typing import Any, Final

from kschedd.apiserver.codec.negotiation import json_response
from kschedd.apiserver.tokens import ISSUER
from kschedd.http.server import HttpResponse

CONFIGURATION: Final = [".well-known", "openid-configuration"]
KEYS: Final = ["openid", "v1", "jwks"]


def issuer_document(host: str) -> HttpResponse:
    """Return the configuration of the issuer. `host` is the address at which the client reached the daemon."""
    document: dict[str, Any] = {
        "issuer": ISSUER,
        "jwks_uri": f"https://{host}/{'/'.join(KEYS)}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["HS256"],
    }
    return json_response(document)


def keys_document() -> HttpResponse:
    """Return the public keys, of which there are none."""
    headers = (("Content-Type", "application/jwk-set+json"), ("Cache-Control", "public, max-age=3600"))
    return HttpResponse(200, headers, b'{"keys":[]}')
