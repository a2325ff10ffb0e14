"""`kschedd kubeconfig`: prints a kubeconfig for clients of a running daemon's REST API."""

import argparse
import base64
from pathlib import Path
from typing import Any

from kschedd.errors import KscheddError
from kschedd.verbs.command_line.parsing import path_value


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "kubeconfig",
        help="print a kubeconfig for the daemon's REST API",
        description="Print a kubeconfig for kubectl and other clients of a daemon that was started with --http: "
        "kschedd kubeconfig > FILE; kubectl --kubeconfig FILE get pods",
    )
    parser.add_argument(
        "--socket", metavar="PATH", help="the daemon's socket; default: $KSCHEDD_SOCKET or the runtime directory"
    )
    parser.add_argument(
        "--server", metavar="URL", help="address of the server for clients; default: the daemon's own address"
    )
    parser.add_argument(
        "--certificate-authority", type=path_value, metavar="FILE", help="CA certificate of the server (PEM)"
    )
    parser.add_argument("--token", metavar="TOKEN", help="bearer token")
    parser.add_argument("--client-certificate", type=path_value, metavar="FILE", help="client certificate (PEM)")
    parser.add_argument(
        "--client-key", type=path_value, metavar="FILE", help="private key of the client certificate (PEM)"
    )
    parser.add_argument("-n", "--namespace", metavar="NS", help="default namespace")
    parser.set_defaults(run=run)


class NoHttpFace(KscheddError):
    """The error if the daemon serves only its socket, not the REST API."""

    def __str__(self) -> str:
        return "the daemon serves no REST API: start it with kschedd run --http, or name one with --server"


class UnreadableCredential(KscheddError):
    """The error if a file named on the command line cannot be read."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(f"{file}: cannot be read: {why}")


def run(options: argparse.Namespace) -> int:
    import yaml

    server = options.server or rest_address(options.socket)
    cluster: dict[str, Any] = {"server": server}
    if options.certificate_authority is not None:
        cluster["certificate-authority-data"] = _read(options.certificate_authority)
    elif server.startswith("http://"):
        cluster["insecure-skip-tls-verify"] = True  # the JavaScript client requires this field if there is no TLS
    user: dict[str, Any] = {}
    if options.token:
        user["token"] = options.token
    if options.client_certificate is not None:
        user["client-certificate-data"] = _read(options.client_certificate)
    if options.client_key is not None:
        user["client-key-data"] = _read(options.client_key)
    context = {"cluster": "kschedd", "user": "kschedd"}
    if options.namespace:
        context["namespace"] = options.namespace
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kschedd", "cluster": cluster}],
        "users": [{"name": "kschedd", "user": user}],
        "contexts": [{"name": "kschedd", "context": context}],
        "current-context": "kschedd",
    }
    print(yaml.safe_dump(config, sort_keys=False), end="")
    return 0


def rest_address(socket: str | None) -> str:
    """Return the address of a daemon's REST API. Raises NoHttpFace."""
    from kschedd.rpc.blocking import BlockingClient

    with BlockingClient(socket) as daemon:
        address = daemon.call("rpc.ping").get("http")
    if not address:
        raise NoHttpFace
    return str(address)


def _read(file: Path) -> str:
    try:
        return base64.b64encode(file.read_bytes()).decode()
    except OSError as error:
        raise UnreadableCredential(file, error.strerror or str(error)) from error
