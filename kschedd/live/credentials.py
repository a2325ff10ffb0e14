"""ServerCredentials: the address of an API server and the user's credentials, from a kubeconfig.

kr8s reads the kubeconfig as kubectl does (contexts, exec plugins, the service account within a cluster).

Raises: LiveError.
"""

import os
import ssl
import tempfile
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

import attrs
import trio

from kschedd.http.endpoint import ConnectFailed, Endpoint
from kschedd.http.proxies import proxy_of
from kschedd.live.errors import LiveError, answer

SILENCE_S: Final = 30  # maximum wait in seconds for a server or a credentials plugin
_FILES: Final = ("server_ca_file", "client_cert_file", "client_key_file")  # attributes of kr8s' KubeAuth
_FILE_FIELDS: Final = ("certificate-authority", "client-certificate", "client-key")  # fields of a kubeconfig


@attrs.frozen(eq=False)
class ServerCredentials:
    server: str
    context: str
    token: str
    endpoint: Endpoint

    @classmethod
    async def read(cls, kubeconfig: str, context: str) -> Self:
        """Return the current credentials from the kubeconfig, its plugin or the service account."""
        try:
            from kr8s._auth import KubeAuth  # kschedd uses only the credentials of kr8s; the import is slow
        except ImportError:
            raise LiveError("--mirror and --schedule", "kr8s is not installed: pip install 'kschedd[live]'") from None
        where = kubeconfig or "the kubeconfig"
        auth: Any = KubeAuth(kubeconfig=kubeconfig or None, context=context or None)
        try:
            with trio.fail_after(SILENCE_S):
                await auth.reauthenticate()
            try:
                tls = await auth.ssl_context()
            finally:
                await trio.to_thread.run_sync(_remove_copies, auth)
            server = str(auth.server)
            if tls is True:  # verify with the certificate authorities of the system
                tls = await trio.to_thread.run_sync(ssl.create_default_context) if _is_encrypted(server) else None
            proxy = auth.proxy or proxy_of(urlsplit(server), os.environ)
            endpoint = Endpoint.of(server, tls if _is_encrypted(server) else None, auth.tls_server_name, proxy)
            return cls(server, str(auth.active_context), (auth.token or "").strip(), endpoint)
        except trio.TooSlowError:
            raise LiveError(where, f"its credentials plugin did not finish within {SILENCE_S} s") from None
        except ConnectFailed as fault:
            raise LiveError(where, str(fault)) from None
        except (AttributeError, IndexError, KeyError, TypeError) as fault:
            raise LiveError(where, f"is not a usable kubeconfig ({type(fault).__name__}: {fault})") from None
        except Exception as fault:  # the kubeconfig is invalid, or a credentials plugin failed
            raise LiveError(where, answer(fault)) from None


def _is_encrypted(server: str) -> bool:
    return server.lower().startswith("https:")


def _remove_copies(auth: Any) -> None:
    """Remove the certificates and keys that kr8s copies from a kubeconfig into new files."""
    config = getattr(auth, "kubeconfig", None)
    entries = [] if config is None else [*config.clusters, *config.users]
    bodies = [entry.get("cluster") or entry.get("user") or {} for entry in entries]
    named = {Path(str(body[field])).name for body in bodies for field in _FILE_FIELDS if field in body}
    for attribute in _FILES:
        file = Path(str(getattr(auth, attribute) or "."))
        if file.parent == Path(tempfile.gettempdir()) and file.name not in named:
            file.unlink(missing_ok=True)
