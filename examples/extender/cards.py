#!/usr/bin/env python3
"""A scheduler extender that allocates cards: it filters and ranks nodes by free cards, and selects preemption victims.

    kschedd run --config examples/extender/config.yaml &
    python examples/extender/cards.py --port 8898 &

The label `example.com/cards: "4"` of a node contains the number of its cards. A pod requests the resource
`example.com/card`, which only this extender handles. The program needs Python's standard library and, for binding,
kschedd's client.

filter      keeps nodes with enough free cards
prioritize  scores a node higher the fewer cards remain: 10 for an exact fit
bind        records the pod's cards, and binds the pod through the daemon's socket
preempt     keeps candidates whose victims hold enough cards

The allocations are in memory: the cards of each bound pod until it is deleted. A production extender would learn the
allocations by watching pods.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

from kschedd.rpc.blocking import BlockingClient
from kschedd.service.errors import RpcError

LABEL, RESOURCE = "example.com/cards", "example.com/card"
Raw = dict[str, Any]


def wanted(pod: Raw) -> int:
    """Return the number of cards that the pod requests."""
    amounts = [container.get("resources", {}).get("requests", {}) for container in pod["spec"]["containers"]]
    return sum(int(amount.get(RESOURCE, 0)) for amount in amounts)


class Cards:
    def __init__(self, socket: str | None) -> None:
        self._socket = socket
        self._given: dict[str, tuple[str, int]] = {}  # for the UID of each pod: its node, and the number of its cards
        self._wanted: dict[str, int] = {}  # requested cards of pods that were filtered but are not bound yet
        self._lock = Lock()

    def left(self, node: Raw) -> int:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels", {})
        with self._lock:
            return int(labels.get(LABEL, 0)) - sum(count for at, count in self._given.values() if at == name)

    def filter(self, args: Raw) -> Raw:
        need = self._wanted[args["Pod"]["metadata"]["uid"]] = wanted(args["Pod"])
        fits, failed, never = [], {}, {}
        for node in args["Nodes"]["items"]:
            name, left = node["metadata"]["name"], self.left(node)
            if left >= need:
                fits.append(node)
            elif int(node["metadata"].get("labels", {}).get(LABEL, 0)) < need:
                never[name] = "node(s) had too few cards"
            else:
                failed[name] = "node(s) had too few cards left"
        return {"Nodes": {"items": fits}, "FailedNodes": failed, "FailedAndUnresolvableNodes": never}

    def prioritize(self, args: Raw) -> list[Raw]:
        need = wanted(args["Pod"])
        over = {node["metadata"]["name"]: self.left(node) - need for node in args["Nodes"]["items"]}
        return [{"Host": name, "Score": max(0, 10 - left)} for name, left in over.items()]

    def bind(self, args: Raw) -> Raw:
        uid, node = args["PodUID"], args["Node"]
        with self._lock:
            self._given[uid] = node, self._wanted.get(uid, 0)
        try:
            with BlockingClient(self._socket) as daemon:
                daemon.call("pods.bind", name=args["PodName"], node=node, namespace=args["PodNamespace"], uid=uid)
        except (RpcError, OSError) as wrong:
            self._forget(uid)
            return {"Error": f"cards: {wrong}"}
        return {}

    def preempt(self, args: Raw) -> Raw:
        need, left = wanted(args["Pod"]), {}
        for node, victims in args["NodeNameToVictims"].items():
            uids = [pod["metadata"]["uid"] for pod in victims["Pods"]]
            with self._lock:
                freed = sum(self._given[uid][1] for uid in uids if uid in self._given)
            if freed >= need:
                left[node] = {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": victims["NumPDBViolations"]}
        for victims in left.values():
            for pod in victims["Pods"]:
                self._forget(pod["UID"])
        return {"NodeNameToMetaVictims": left}

    def _forget(self, uid: str) -> None:
        with self._lock:
            self._given.pop(uid, None)


def serve(cards: Cards, port: int) -> ThreadingHTTPServer:
    verbs = {"/filter": cards.filter, "/prioritize": cards.prioritize, "/bind": cards.bind, "/preempt": cards.preempt}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keeps the connection of the scheduler open
        # otherwise the second part of an answer waits 40 ms for the confirmation of the first part
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            verb = verbs.get(self.path)
            answer = b"" if verb is None else json.dumps(verb(json.loads(body))).encode()
            self.send_response(404 if verb is None else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            print(format % args, flush=True)

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8898, help="port to listen on (default: 8898); 0: any free port")
    parser.add_argument("--socket", help="socket of the daemon; default: $KSCHEDD_SOCKET or the runtime directory")
    options = parser.parse_args()
    server = serve(Cards(options.socket), options.port)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
