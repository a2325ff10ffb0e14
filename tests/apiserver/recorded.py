"""Replays of a real kube-apiserver's records to the REST API in this process; responses are compared with the record.

The recordings contain a `check.py`, which sends the requests to any server over HTTP. Here the same requests are sent
to an empty cluster for each record, in virtual time; check.py's functions for paths, placeholders and comparison are
used.

By hand: `python -m tests.apiserver.recorded [FAMILY...] [--only PREFIX] [--part PART]` prints the agreement, and with
`--only` or `--part` each difference.
"""

import argparse
import gzip
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
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
from kschedd.store.admission.chain import Admission, configured_plugins
from tests.apiserver.asking import JSON, Asker, asking
from tests.full_run import part

FOLDER = "apiserver"
FAMILIES = ("create", "update", "patch", "delete-and-bind")
_APPLY = "application/apply-patch+yaml"
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"', re.DOTALL)


@attrs.frozen
class Step:
    """A request of a record, and the parts in which the response agrees: `code`, `object`, `causes` and `text`."""

    record: str
    kind: str
    number: int
    agreement: Mapping[str, bool]
    differences: tuple[str, ...]


def load_check(folder: Path) -> ModuleType:
    """Load the recordings' module for requests and comparison."""
    spec = importlib.util.spec_from_file_location("recorded_check", folder / "check.py")
    assert spec is not None, "check.py lies beside the recordings"
    assert spec.loader is not None, "it is a file"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_family(folder: Path, family: str) -> Iterator[dict[str, Any]]:
    with gzip.open(folder / f"{family}.jsonl.gz", "rt", encoding="utf-8", errors="surrogatepass") as lines:
        for line in lines:
            yield json.loads(line)


class _UnpreparedError(Exception):
    """The error if an object that the record requires is rejected."""


class Play:
    """The replay of one record, with the values of its placeholders and the responses."""

    def __init__(self, api: Asker, check: ModuleType) -> None:
        self._api = api
        self._check = check
        self._names: dict[str, Any] = {}

    async def steps(self, record: Mapping[str, Any]) -> list[Step]:
        kind = record.get("kind") or record["topic"]
        try:
            target = await self._prepare(record)
        except _UnpreparedError as refused:
            count = len(record.get("steps") or (record,))
            return [Step(record["id"], kind, number, {"code": False}, (str(refused),)) for number in range(count)]
        done = []
        for number, step in enumerate(self._check.steps_of(record, target)):
            got = await self._ask(step)
            agreement, found = self._check.judge(step["want"], {**got, **self._check.returned(got)})
            done.append(Step(record["id"], kind, number, agreement, tuple(self._check.spelled(found))))
        return done

    async def _prepare(self, record: Mapping[str, Any]) -> Any:
        """Create the existing objects; return the object to update or patch."""
        for manifest in record.get("setup") or ():
            await self._create(manifest)
        before = record.get("old") or record.get("object")
        target = await self._create(before) if before else None
        for applied in record.get("applied") or ():
            path = self._check.path_of(record["kind"], target["metadata"].get("namespace"), target["metadata"]["name"])
            path += f"?fieldManager={quote(applied['fieldManager'])}"
            target = await self._must("PATCH", path, applied["manifest"], _APPLY)
        if target:
            meta, spec = target["metadata"], target.get("spec") or {}
            self._names["<uid>"], self._names["<resourceVersion>"] = meta["uid"], meta["resourceVersion"]
            self._names["<time>"], self._names["<ip>"] = meta["creationTimestamp"], spec.get("clusterIP")
            ports = spec.get("ports") or []
            for port in ports:
                if "nodePort" in port:
                    self._names["<nodePort>"] = port["nodePort"]
        if "steps" in record:
            versions = {name: version for name, version in self._names.items() if name.startswith("<resourceVersion:")}
            self._names |= {name.replace("<r", "<oldR"): version for name, version in versions.items()}
            now = await self._must("GET", "/api/v1/namespaces/default/configmaps?limit=1", None, JSON)
            self._names["<start>"] = now["metadata"]["resourceVersion"]
        self._names = {name: value for name, value in self._names.items() if value is not None}
        return target

    async def _create(self, manifest: Mapping[str, Any]) -> Any:
        """Create an object, and then set each field of its status."""
        manifest = self._check.filled(dict(manifest), self._names)
        status, kind, space = manifest.pop("status", None), manifest["kind"], manifest["metadata"].get("namespace")
        path = self._check.path_of(kind, space) + "?fieldManager=golden"
        stored = await self._must("POST", path, manifest, JSON)
        if status is None:
            return stored
        stored["status"] = {**(stored.get("status") or {}), **status}
        path = self._check.path_of(kind, space, stored["metadata"]["name"], "status") + "?fieldManager=golden"
        return await self._must("PUT", path, stored, JSON)

    async def _must(self, method: str, path: str, body: Any, content_type: str) -> Any:
        answered = await self._api.ask(method, path, body, content_type=content_type)
        if answered.status >= 300:
            raise _UnpreparedError(f"{method} {path}: {answered.body.decode()}")
        self._learn(answered.json)
        return answered.json

    def _learn(self, body: Mapping[str, Any]) -> None:
        meta = body.get("metadata") or {}
        if body.get("kind") in self._check.API_VERSION and meta.get("name"):
            self._names.setdefault(f"<uid:{meta['name']}>", meta.get("uid"))
            self._names[f"<resourceVersion:{meta['name']}>"] = meta.get("resourceVersion")
        for item in body.get("items") or ():
            self._names.setdefault(f"<uid:{item['metadata']['name']}>", item["metadata"].get("uid"))
        if meta.get("continue"):
            self._names["<continue>"] = quote(meta["continue"], safe="")

    async def _ask(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Return the response to one request in the form of a record's `want`."""
        check = self._check
        path, content_type = check.filled(step["path"], self._names), step.get("content_type", JSON)
        if step["method"] == "WATCH":
            return await self._watch(path)
        body = None
        if "raw" in step:
            body = step["raw"].encode()
        elif "body" in step:
            body = json.dumps(check.filled(step["body"], self._names)).encode()
        user = step.get("as") or {}
        headers = {"impersonate-user": user["user"], "impersonate-group": ",".join(user["groups"])} if user else {}
        response = await self._api.respond(step["method"], path, body, content_type=content_type, headers=headers)
        answered = await self._api.whole(response)
        answer = check.decoded(answered.body)
        self._learn(answer)
        got: dict[str, Any] = {"code": answered.status}
        reported = "\n".join(value for name, value in response.headers if name == "Warning")
        if warnings := [re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) for text in _WARNING.findall(reported)]:
            got["warnings"] = warnings
        if answered.status >= 300:
            return {**got, "status": check.refusal(answer)}
        if "items" in answer:
            kept = ("continue", "remainingItemCount")
            more = {name: answer["metadata"][name] for name in kept if answer["metadata"].get(name)}
            return {**got, "list": {"kind": answer.get("kind"), "items": answer["items"] or [], **more}}
        if content_type == _APPLY:
            managed = answer["metadata"].get("managedFields") or ()
            entries = [{name: each for name, each in entry.items() if name != "time"} for entry in managed]
            order = ("manager", "operation", "subresource")
            got["managedFields"] = sorted(entries, key=lambda entry: [entry.get(name, "") for name in order])
        return {**got, "object": answer}

    async def _watch(self, path: str) -> dict[str, Any]:
        query = "&" if "?" in path else "?"
        answered = await self._api.ask("GET", f"{path}{query}watch=true&timeoutSeconds=1")
        if answered.status != 200:
            return {"code": answered.status, "status": self._check.refusal(self._check.decoded(answered.body))}
        events = []
        for line in answered.body.split(b"\n"):
            event = json.loads(line) if line.strip() else {"type": "BOOKMARK"}
            if event["type"] == "ERROR":
                status = {**self._check.refusal(event["object"]), "code": event["object"].get("code")}
                events.append({"type": "ERROR", "status": status})
            elif event["type"] != "BOOKMARK":
                events.append({"type": event["type"], "object": event["object"]})
        return {"code": 200, "events": events}


async def _play(folder: Path, family: str, only: str, every: int, steps: list[Step]) -> None:
    check = load_check(folder)
    chosen = part(every, [record for record in read_family(folder, family) if record["id"].startswith(only)])
    async with _empty_cluster() as shared:
        for record in chosen:
            if "manifest" in record and not record["setup"]:  # dry runs, which change nothing
                steps += await Play(shared, check).steps(record)
    for record in chosen:
        if "manifest" not in record or record["setup"]:
            async with _empty_cluster(**record.get("plugins", {})) as api:
                steps += await Play(api, check).steps(record)


def _empty_cluster(enable: Sequence[str] = (), disable: Sequence[str] = ()) -> AbstractAsyncContextManager[Asker]:
    plugins = {**admission_without(PARTS), **configured_plugins(enable, disable)}
    return asking(service_range="10.0.0.0/24", admission=Admission(plugins), without=PARTS, version=V1_34)


def run(folder: Path, family: str, only: str = "", every: int = 1) -> list[Step]:
    """Replay a family's records in virtual time; of these, the everyday run replays only every `every`-th."""
    steps: list[Step] = []
    trio.run(_play, folder, family, only, every, steps, clock=trio.testing.MockClock(autojump_threshold=0.001))
    return steps


def counted(steps: list[Step]) -> dict[str, tuple[int, int]]:
    """Return for each part the number of steps that agree, and the number of all steps."""
    found: Counter[tuple[str, bool]] = Counter()
    for step in steps:
        found.update(step.agreement.items())
    return {
        part: (found[part, True], found[part, True] + found[part, False]) for part in dict.fromkeys(p for p, _ in found)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("families", nargs="*", default=FAMILIES, metavar="FAMILY")
    parser.add_argument("--only", default="", metavar="PREFIX", help="only records with this id prefix")
    parser.add_argument("--part", default="", help="print what differs in this part: code, object, causes or text")
    options = parser.parse_args()
    folder = shared_folder()
    assert folder is not None, "the recordings lie in the shared folder"
    for family in options.families:
        steps = run(folder / FOLDER, family, options.only)
        for step in steps:
            wrong = not all(step.agreement.values())
            if wrong and (options.only or not step.agreement.get(options.part, True)):
                print(
                    f"{step.record} {step.number} {step.kind}", *(each[:900] for each in step.differences), sep="\n   "
                )
        print(family, *(f"{part} {alike}/{requests}" for part, (alike, requests) in counted(steps).items()), flush=True)


if __name__ == "__main__":
    main()
