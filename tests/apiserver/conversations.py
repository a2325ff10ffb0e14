"""Replays of recorded conversations to the REST API in this process: requests are sent, and responses compared.

The recordings contain a `compare.py`, which runs the real clients against any server. Here only their requests are
used, in virtual time and without a socket, so that thousands of them take seconds. The uids, versions, generated names
and continue tokens in a request are those that this server gave to the same objects. The normalization and the
comparison are those of compare.py.

By hand: `python -m tests.apiserver.conversations FOLDER... [-v]`.
"""

import argparse
import gzip
import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

import attrs
import trio
import trio.testing

from kschedd.bench.shared import shared_folder
from kschedd.config.versions.kube_versions import V1_34
from kschedd.controllers.parts import PARTS, admission_without
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import HttpResponse, Peer
from kschedd.store.admission.chain import Admission
from tests.apiserver.asking import Asker, asking

FOLDER = "apiserver-conversations"
_PLACEHOLDER = re.compile(
    r"<(?:uid:[^>]+|uid|rv\d+|list-rv|continue|time|ip|nodeport|n|debugger|gen[^>]*|[\w.-]+-\d+)>"
)
_NUMBERED = re.compile(r"<rv\d+>")
_VERSION = "/metadata/resourceVersion"
_JUMP_S = 0.001  # seconds of real time without a runnable task after which virtual time advances
_QUIET_S = 2 * _JUMP_S  # the same without a deadline: all effects of the request have occurred
_STAMP = "2026-11-21T12:00:00Z"


def load_compare(folder: Path) -> ModuleType:
    """Load the recordings' module for normalization."""
    spec = importlib.util.spec_from_file_location("recorded_compare", folder / "compare.py")
    assert spec is not None, "compare.py lies beside the recordings"
    assert spec.loader is not None, "it is a file"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_scenario(file: Path) -> list[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


@attrs.define(eq=False)
class _Exchange:
    """A request and its response, in compare.py's form."""

    raw: dict[str, Any]
    save: Mapping[str, str] = attrs.field(factory=dict)
    done: trio.Event = attrs.field(factory=trio.Event)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)


@attrs.define(eq=False)
class _Meanwhile:
    """Calls of another client while this client waits: at an open watch, or before it repeats a request."""

    calls: list[Mapping[str, Any]]
    while_waiting: bool  # True: after a while; False: with the first watch

    @classmethod
    def of(cls, recorded: Mapping[str, Any]) -> "_Meanwhile":
        calls = [call for call in recorded.get("calls") or () if call.get("method")]
        return cls(calls, recorded.get("when") != "watch")


def _repeats(wanted: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether this request was sent before."""
    return any(all(earlier[part] == wanted[part] for part in ("method", "path", "query")) for earlier in before)


class Replay:
    """The replay of one scenario on a separate cluster."""

    def __init__(self, api: Asker, compare: ModuleType) -> None:
        self._api = api
        self._compare = compare
        self._norm = compare.Norm()
        self._norm.replace = []
        self._saved: dict[str, str] = {}
        self._list_version = ""
        self._continue = ""

    async def record(self, recorded: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the differences of one record, by part."""
        self._norm.start_record()
        given = json.dumps([recorded.get(key) for key in ("argv", "stdin", "files", "calls", "script")])
        self._norm.literal_rvs = {"0", *re.findall(r"resource-?[vV]ersion[^\w${]{1,8}(\d+)", given)}
        exchanges: list[tuple[Mapping[str, Any], _Exchange]] = []
        meanwhile = _Meanwhile.of(recorded.get("meanwhile") or {})
        async with trio.open_nursery() as nursery:
            calls = [call for call in recorded.get("calls") or () if call.get("method")]
            if len(calls) != len(recorded["requests"]):
                calls = []  # calls by a client, of which only the requests are recorded
            for place, wanted in enumerate(recorded["requests"]):
                if meanwhile.while_waiting and _repeats(wanted, recorded["requests"][:place]):
                    await self._meanwhile(meanwhile)  # a client that repeats a request has waited
                self._learn(wanted, [exchange for _, exchange in exchanges])
                exchange = self._called(calls[place]) if calls else self._exchange(wanted)
                exchanges.append((wanted, exchange))
                nursery.start_soon(self._run, wanted, exchange)
                if "events" in wanted:
                    await trio.testing.wait_all_tasks_blocked(_QUIET_S)
                    followed = place + 1 < len(recorded["requests"])
                    seen = len(wanted["events"]) if followed and wanted.get("ended_by") == "client" else None
                    await self._meanwhile(meanwhile, exchange, seen)
                else:
                    await exchange.done.wait()
            await self._meanwhile(meanwhile)
            await trio.testing.wait_all_tasks_blocked(_QUIET_S)
            for wanted, exchange in exchanges:
                if wanted.get("ended_by") == "client":
                    exchange.scope.cancel()
        return self._differences(recorded, exchanges)

    def _learn(self, wanted: Mapping[str, Any], exchanges: Sequence[_Exchange]) -> None:
        """Assign names to the values in the responses so far; versions are included if this request contains any."""
        answered = [exchange.raw for exchange in exchanges if exchange.raw.get("status") is not None]
        self._norm.start_record()
        for raw in answered:
            self._compare.learn_exchange(self._norm, raw)
        if _NUMBERED.search(json.dumps(wanted.get("body"))) or _NUMBERED.search(f"{wanted['path']} {wanted['query']}"):
            for raw in answered:
                self._compare.normal_exchange(self._norm, raw)

    def _called(self, call: Mapping[str, Any]) -> _Exchange:
        """Return a recorded call with the saved values inserted."""
        body = self._filled(call.get("body"))
        data = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = {name.lower(): str(value) for name, value in self._filled(call.get("headers") or {}).items()}
        headers["accept"] = headers.get("accept") or call.get("accept", "application/json")
        if body is not None:
            headers["content-type"] = call.get("type", "application/json")
        target = self._filled(call["path"]).replace(" ", "%20")
        return _Exchange(
            {"method": call["method"], "target": target, "headers": headers, "body": data}, call.get("save") or {}
        )

    def _exchange(self, wanted: Mapping[str, Any]) -> _Exchange:
        path = self._actual(wanted["path"])
        query = "&".join(f"{name}={_quoted(self._actual(value))}" for name, value in wanted["query"])
        headers = dict(wanted["headers"])
        if "accept" in headers:
            kept = [each for each in headers["accept"].split(",") if "kubernetes.protobuf" not in each]
            headers["accept"] = ",".join(kept) or "application/json"
        body = wanted.get("body")
        data = b""
        if isinstance(body, dict) and set(body) == {"$text"}:
            data = str(self._actual(body["$text"])).encode()
        elif body is not None:
            if isinstance(body, dict) and set(body) == {"$protobuf"}:
                body = body["$protobuf"]
                headers["content-type"] = "application/json"
            data = json.dumps(self._actual(_unnoted(body))).encode()
        target = path + (f"?{query}" if query else "")
        return _Exchange({"method": wanted["method"], "target": target, "headers": headers, "body": data})

    async def _run(self, wanted: Mapping[str, Any], exchange: _Exchange) -> None:
        raw = exchange.raw
        headers = {"host": "localhost", **raw["headers"]}
        request = HttpRequest(raw["method"], _escaped(raw["target"]), headers, raw["body"], True)
        response = await self._api.face(request, Peer(1, "127.0.0.1"))
        raw["status"] = response.status
        raw["response_headers"] = {name.lower(): value for name, value in response.headers}
        pieces = [response.body]
        watched = "events" in wanted and response.status == 200
        if watched:
            raw |= {"watch": True, "events": [], "ended_by": "client"}
        if response.stream is not None:
            with exchange.scope:
                await self._stream(response, pieces, raw if watched else None)
        body = b"".join(pieces)
        if watched:
            raw["ended_by"] = "client" if exchange.scope.cancelled_caught else "server"
            raw["events"] = [json.loads(line) for line in body.split(b"\n") if line.strip()]
        else:
            raw["response"] = b"" if raw["method"] == "HEAD" else body
            self._note(body)
        for name, path in exchange.save.items():
            self._saved[name] = _at(self._compare.load(body), path)
        exchange.done.set()

    async def _stream(self, response: HttpResponse, pieces: list[bytes], watched: dict[str, Any] | None) -> None:
        async def send(piece: bytes) -> None:
            pieces.append(piece)
            if watched is not None:
                watched["events"] += [json.loads(line) for line in piece.split(b"\n") if line.strip()]
            await trio.lowlevel.checkpoint()

        assert response.stream is not None, "the caller has looked"
        await response.stream(send)

    def _note(self, body: bytes) -> None:
        """Save the version and the continue token of the last list, to which later requests of this record refer."""
        value = self._compare.load(body)
        meta = value.get("metadata") if isinstance(value, dict) else None
        if isinstance(meta, dict) and (isinstance(value.get("items"), list) or value.get("kind") == "Table"):
            self._list_version = meta.get("resourceVersion") or self._list_version
            self._continue = meta.get("continue") or self._continue

    async def _meanwhile(
        self, meanwhile: "_Meanwhile", watch: _Exchange | None = None, seen: int | None = None
    ) -> None:
        """Make the calls that are due; calls that follow the events `seen` of `watch` are made later."""
        while meanwhile.calls:
            if watch is not None and seen is not None and len(watch.raw.get("events") or ()) >= seen:
                return
            call = meanwhile.calls.pop(0)
            body = call.get("body")
            data = b"" if body is None else json.dumps(self._filled(body)).encode()
            headers = {"accept": "application/json", "content-type": call.get("type", "application/json")}
            answered = await self._api.ask(
                call["method"], self._filled(call["path"]), data or None, content_type=headers["content-type"]
            )
            value = self._compare.load(answered.body)
            for name, path in (call.get("save") or {}).items():
                self._saved[name] = _at(value, path)
            if value is not None:
                self._norm.learn(value, self._compare.resource_of(call["path"].partition("?")[0]))
            await trio.testing.wait_all_tasks_blocked(_QUIET_S)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"\$\{(\w+)\}", lambda found: str(self._saved.get(found[1], found[0])), value)
        if isinstance(value, dict):
            return {name: self._filled(each) for name, each in value.items()}
        return [self._filled(each) for each in value] if isinstance(value, list) else value

    def _actual(self, value: Any) -> Any:
        """Return a recorded value with this cluster's uids, versions and names in place of placeholders."""
        if isinstance(value, dict):
            return {self._actual(name): self._actual(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._actual(each) for each in value]
        if not isinstance(value, str) or "<" not in value:
            return value
        uids = {name: uid for uid, name in self._norm.uids.items()}
        versions = {name: version for version, name in self._norm.rvs.items()}
        names = {name: own for own, name in self._norm.names.items()}

        def own(found: re.Match[str]) -> str:
            text = found[0]
            for known in (uids, versions, names):
                if text in known:
                    return known[text]
            match text:
                case "<list-rv>":
                    return self._list_version
                case "<continue>":
                    return self._continue
                case "<time>":
                    return _STAMP
                case "<n>":
                    return "400"
                case "<debugger>":
                    return "debugger-abcde"
                case "<uid>":
                    return "00000000-0000-4000-8000-000000000000"
            return "1" if text.startswith("<rv") else text  # otherwise a version that the client has invented

        return _PLACEHOLDER.sub(own, value)

    def _differences(
        self, recorded: Mapping[str, Any], exchanges: Sequence[tuple[Mapping[str, Any], _Exchange]]
    ) -> dict[str, list[str]]:
        compare = self._compare
        self._norm.start_record()
        for _, exchange in exchanges:
            compare.learn_exchange(self._norm, exchange.raw)
        got = {
            "exit_code": recorded["exit_code"],
            "stdout": recorded["stdout"],
            "stderr": recorded["stderr"],
            "requests": [
                compare.normal_exchange(self._norm, exchange.raw, recorded.get("headers_too", False))
                for _, exchange in exchanges
            ],
        }
        found: dict[str, list[str]] = compare.compare(recorded, got)
        found.pop("requests", None)  # they were requested as recorded
        return found


def _unnoted(body: Any) -> Any:
    """Return a body without the values that differ between servers.

    These are managedFields with their times, and the version in a JSON patch, which is recorded unchanged.
    """
    if isinstance(body, dict) and "managedFields" in (body.get("metadata") or {}):
        meta = {field: each for field, each in body["metadata"].items() if field != "managedFields"}
        return {**body, "metadata": meta}
    if isinstance(body, list):
        return [each for each in body if not isinstance(each, dict) or each.get("path") != _VERSION]
    return body


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = (value or {}).get(part)
    return value


def _quoted(value: str) -> str:
    return quote(value, safe="/=,!():.-_")


def _escaped(target: str) -> bytes:
    path, mark, query = target.partition("?")
    return (quote(path, safe="/:") + mark + query).encode()


@attrs.frozen
class Agreement:
    """The number of records of a file that agree, and the differences in the others."""

    file: str
    total: int
    equal: int
    differences: Mapping[str, Mapping[str, Sequence[str]]]


def left_out(recorded: Mapping[str, Any]) -> bool:
    """Return whether a record is excluded from the comparison or may differ."""
    tagged = not ACCEPTED.isdisjoint(recorded.get("tags") or ())
    return bool(recorded.get("manual")) or tagged or recorded["id"] in ACCEPTED_RECORDS


#: Tags of records that may differ, because there are no roles and no priorities of requests.
ACCEPTED = frozenset(("rbac", "apf"))

#: Records that may differ, with the reason.
ACCEPTED_RECORDS = {
    "backend/leases/010": "shows what a user with a scheduler's role wrote in the record before: there are no roles",
    "backend/leases/011": "deletes what that user had made",
}


async def replay(file: Path, compare: ModuleType) -> Agreement:
    total = equal = 0
    differences: dict[str, dict[str, list[str]]] = {}
    admission = Admission(admission_without(PARTS))
    async with asking(service_range="10.0.0.0/24", admission=admission, without=PARTS, version=V1_34) as api:
        scenario = Replay(api, compare)
        for recorded in read_scenario(file):
            if recorded.get("manual"):
                continue
            found = await scenario.record(recorded)
            if left_out(recorded):
                continue
            total += 1
            equal += not found
            if found:
                differences[recorded["id"]] = found
    return Agreement(file.name, total, equal, differences)


def run(file: Path, compare: ModuleType) -> Agreement:
    """Replay a file in virtual time."""
    clock = trio.testing.MockClock(autojump_threshold=_JUMP_S)
    return trio.run(replay, file, compare, clock=clock)


def files_of(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, Path]]:
    for name in names:
        for file in sorted((folder / name).glob("*.jsonl.gz")):
            yield name, file


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="+", help="folders of the recordings, such as backend or kubectl-1.37")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every difference")
    parser.add_argument("--json", type=Path, help="write all differences to this file")
    options = parser.parse_args()
    shared = shared_folder()
    if shared is None:
        print("there is no shared folder with recordings", file=sys.stderr)
        return 2
    compare = load_compare(shared / FOLDER)
    sums: Counter[str] = Counter()
    every: dict[str, Any] = {}
    for name, file in files_of(shared / FOLDER, options.names):
        agreement = run(file, compare)
        sums[f"{name} equal"] += agreement.equal
        sums[f"{name} total"] += agreement.total
        every.update(agreement.differences)
        print(f"{name}/{file.name}: {agreement.equal} of {agreement.total}", flush=True)
        if options.verbose:
            for record, parts in agreement.differences.items():
                for part, lines in parts.items():
                    for line in lines:
                        print(f"  {record} {part}: {line}")
    for name in options.names:
        print(f"{name}: {sums[f'{name} equal']} of {sums[f'{name} total']}")
    if options.json is not None:
        options.json.write_text(json.dumps(every, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
