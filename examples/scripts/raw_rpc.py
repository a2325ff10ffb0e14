#!/usr/bin/env python3
"""Use of the daemon's socket without a client or a MessagePack library: every byte is encoded by hand.

    kschedd run --detach
    kschedd apply -f examples/demo/01-cluster.yaml
    python examples/scripts/raw_rpc.py [SOCKET]

The script applies a pod with `objects.apply`, then calls `objects.get` until the pod has a node, and prints that node.
The bytes on the socket are shown in hexadecimal. The protocol is MessagePack-RPC: a request is the array [0, msgid,
method, params], its response [1, msgid, error, result]. Needs only Python.
"""

import os
import socket
import struct
import sys
import tempfile
import time

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: by-hand
spec:
  containers:
    - name: app
      image: nginx
      resources:
        requests: {cpu: 100m, memory: 64Mi}
"""


# -- writing MessagePack, as far as requests need it ------------------------------------------------------------------


def string(text: str) -> bytes:
    data = text.encode()
    if len(data) < 32:
        return bytes([0xA0 | len(data)]) + data  # fixstr: 101 and five bits of length
    if len(data) < 256:
        return bytes([0xD9, len(data)]) + data  # str 8
    return b"\xda" + struct.pack(">H", len(data)) + data  # str 16: enough for this script


def array(*items: bytes) -> bytes:
    return bytes([0x90 | len(items)]) + b"".join(items)  # fixarray: up to 15 items


def mapping(**items: bytes) -> bytes:
    return bytes([0x80 | len(items)]) + b"".join(string(key) + value for key, value in items.items())


def small(number: int) -> bytes:
    return bytes([number])  # positive fixint: 0 to 127


def request(msgid: int, method: str, **params: bytes) -> bytes:
    """Return the request [0, msgid, method, [{name: value}]]: parameters by name are one map in the array."""
    return array(small(0), small(msgid), string(method), array(mapping(**params)))


# -- reading it -------------------------------------------------------------------------------------------------------


class Reader:
    """A reader of the values on the socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")

    def _bytes(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            sys.exit("the daemon closed the connection")
        return data

    def _number(self, layout: str) -> int | float:
        number: int | float = struct.unpack(">" + layout, self._bytes(struct.calcsize(layout)))[0]
        return number

    def value(self) -> object:
        first = self._bytes(1)[0]
        if first < 0x80:
            return first
        if first < 0x90:
            return self._map(first & 0x0F)
        if first < 0xA0:
            return [self.value() for _ in range(first & 0x0F)]
        if first < 0xC0:
            return self._bytes(first & 0x1F).decode()
        if first >= 0xE0:
            return first - 256
        match first:
            case 0xC0:
                return None
            case 0xC2 | 0xC3:
                return first == 0xC3
            case 0xC4 | 0xC5 | 0xC6:
                return self._bytes(int(self._number("BHI"[first - 0xC4])))
            case 0xCA | 0xCB:
                return self._number("fd"[first - 0xCA])
            case 0xCC | 0xCD | 0xCE | 0xCF:
                return self._number("BHIQ"[first - 0xCC])
            case 0xD0 | 0xD1 | 0xD2 | 0xD3:
                return self._number("bhiq"[first - 0xD0])
            case 0xD9 | 0xDA | 0xDB:
                return self._bytes(int(self._number("BHI"[first - 0xD9]))).decode()
            case 0xDC | 0xDD:
                return [self.value() for _ in range(int(self._number("HI"[first - 0xDC])))]
            case 0xDE | 0xDF:
                return self._map(int(self._number("HI"[first - 0xDE])))
        sys.exit(f"0x{first:02x} begins nothing that this script reads")

    def _map(self, count: int) -> dict[object, object]:
        return {self.value(): self.value() for _ in range(count)}


# -- the conversation -------------------------------------------------------------------------------------------------


def default_socket() -> str:
    if given := os.environ.get("KSCHEDD_SOCKET"):
        return given
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = f"{runtime}/kschedd" if runtime else f"{tempfile.gettempdir()}/kschedd-{os.getuid()}"
    return f"{folder}/kschedd.sock"


def show(direction: str, data: bytes, most: int = 64) -> None:
    tail = f" ... {len(data)} bytes" if len(data) > most else ""
    print(f"{direction} {data[:most].hex(' ')}{tail}")


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else default_socket()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}: is a daemon running? `kschedd run` starts one")
    reader = Reader(connection)
    msgid = 0

    def ask(method: str, **params: bytes) -> object:
        nonlocal msgid
        msgid = msgid % 127 + 1
        message = request(msgid, method, **params)
        show("->", message)
        connection.sendall(message)
        response = reader.value()
        assert isinstance(response, list)
        kind, answered, error, result = response
        assert (kind, answered) == (1, msgid), f"the response to {msgid} is expected, not {response}"
        if error is not None:
            sys.exit(f"{method}: {error['code']}: {error['message']}")
        print(f"<- {str(result)[:160]}")
        return result

    answer = ask("objects.apply", manifests=string(POD), source=string("by hand"))
    assert isinstance(answer, dict)
    if answer["errors"]:
        sys.exit("\n".join(error["message"] for error in answer["errors"]))
    for _ in range(100):
        found = ask("objects.get", kind=string("Pod"), name=string("by-hand"), namespace=string("default"))
        assert isinstance(found, dict)
        pod = found["object"]
        if node := pod["spec"].get("nodeName"):
            print(f"pod by-hand went to {node}")
            return
        refused = [c for c in pod["status"].get("conditions", []) if c.get("reason") == "Unschedulable"]
        if refused:
            sys.exit(f"pod by-hand is pending: {refused[0]['message']}")
        time.sleep(0.05)
    sys.exit("pod by-hand has no node after 5 seconds")


if __name__ == "__main__":
    main()
