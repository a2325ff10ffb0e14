"""Random values, manifests and frames for `fuzz.py`, all from a `random.Random`."""

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack

from kschedd.api.manifests import read_paths
from tests.bench.churn import custom_kind, node, of_claim, pod, workload

Raw = dict[str, Any]
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, 1e308, float("inf"), float("nan")),
    *("", "a", "x" * 64, "x" * 254, "A_B", "..", "☃", "\x00", "\ud800".encode("utf-16", "surrogatepass").hex(), "1e30"),
    *("100m", "-1", "9223372036854775807", "1Ei", "0.0000001", "1.5Gi", "default", "kube-system", "10m", "Exists"),
    *(
        "In",
        "NotIn",
        "Gt",
        "DoesNotExist",
        "NoSchedule",
        "ScheduleAnyway",
        "Always",
        "v1",
        "Pod",
        "2026-01-01T00:00:00Z",
    ),
    *([], {}, [None], [[]], {"": None}, {"a": {"b": {"c": []}}}, ["a"] * 50, {f"k{n}": "v" for n in range(50)}),
)


def value(chance: random.Random) -> Any:
    return copy.deepcopy(chance.choice(VALUES))


def corpus() -> list[Raw]:
    """Return valid manifests: those of the examples, and one for each kind of pod and workload of the soak."""
    found = [
        dict(each.raw) for each in read_paths(["examples/clusters", "examples/workloads", "examples/demo"]).manifests
    ]
    found += [pod(number) for number in range(14)] + [node(number) for number in range(4)]
    found += [made for number in range(3) for made in workload(number)] + of_claim(1) + [custom_kind(1)]
    found += [each for path in sorted(Path("examples/plugins").glob("*.yaml")) for each in _of_file(path)]
    return [copy.deepcopy(each) for each in found]


def _of_file(path: Path) -> list[Raw]:
    return [dict(each.raw) for each in read_paths([path]).manifests]


def places(raw: Any) -> Iterator[tuple[Any, Any]]:
    """Return every container with each of its keys or indexes."""
    todo = [raw]
    while todo:
        at = todo.pop()
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        for key in keys:
            yield at, key
            if isinstance(at[key], dict | list):
                todo.append(at[key])


def mutated(raw: Raw, chance: random.Random, times: int) -> Raw:
    """Return a copy with this many mutations: replaced, removed, duplicated, moved or added values."""
    made = copy.deepcopy(raw)
    for _ in range(times):
        there = list(places(made))
        if not there:
            return made
        at, key = chance.choice(there)
        match chance.randrange(7):
            case 0 | 1 | 2:
                at[key] = value(chance)
            case 3:
                del at[key]
            case 4:
                at[key] = [at[key], copy.deepcopy(at[key])]
            case 5:
                other, where = chance.choice(there)
                if isinstance(other, dict) and where in other:
                    at[key] = copy.deepcopy(other[where])
            case _:
                if isinstance(at, dict):
                    at[chance.choice(("name", "spec", "metadata", "value", "labels", "unknown", "", "☃"))] = value(
                        chance
                    )
    return made


def text(written: str, chance: random.Random) -> str:
    """Return the text with some pieces cut, duplicated or replaced."""
    for _ in range(chance.randrange(1, 5)):
        start = chance.randrange(len(written) + 1)
        end = min(len(written), start + chance.choice((0, 1, 1, 3, 20, 200)))
        piece = chance.choice(
            ("", "\t", ":", "- ", "{", "}", "&a ", "*a", "|\n", "'", '"', "\x00", "☃", "---\n", "!!python/x ")
        )
        written = written[:start] + chance.choice((piece, written[start:end] * 2)) + written[end:]
    return written


def params(chance: random.Random, wanted: list[Raw], manifests: list[Raw]) -> Any:
    """Return plausible or implausible parameters for a method with these parameters."""
    if chance.random() < 0.1:
        return value(chance)
    named: Raw = {}
    for each in wanted:
        if each["required"] or chance.random() < 0.4:
            named[each["name"]] = _param(chance, each, manifests)
    if chance.random() < 0.1:
        named[chance.choice(("x", "", "name"))] = value(chance)
    return [named] if chance.random() < 0.7 else list(named.values())


def _param(chance: random.Random, wanted: Raw, manifests: list[Raw]) -> Any:
    if wanted.get("choices") and chance.random() < 0.7:
        return chance.choice(wanted["choices"])
    if chance.random() < 0.3:
        return value(chance)
    name = wanted["name"]
    if name.startswith("manifest"):
        return mutated(chance.choice(manifests), chance, chance.randrange(3))
    if name == "kind":
        return chance.choice(("Pod", "Node", "Deployment", "po", "Namespace", "ConfigMap"))
    if name in ("name", "node", "like", "fork"):
        return chance.choice(("n1", "n2", "p1", "p2", "fork-1", "web"))
    if name in ("pod", "pods"):
        return chance.choice(("default/p1", "default/p2", ["default/p1"], "p1"))
    if name == "plugin":
        return chance.choice(("NodeResourcesFit", "ImageLocality", "None"))
    if name in ("seconds", "interval_s", "timeout_s", "grace_s"):
        return chance.choice((0, 0.01, 0.1, 1))
    if wanted["type"].startswith("integer"):
        return chance.choice((0, 1, 2, 10))
    return value(chance)


def frame(chance: random.Random, methods: list[Raw], manifests: list[Raw], msgid: int) -> bytes:
    """Return a request or a notification for a random method."""
    method = chance.choice(methods)
    requests = params(chance, method["params"], manifests)
    if chance.random() < 0.9:
        return _packed([0, msgid, method["name"], requests])
    return _packed([2, method["name"], requests])


def _packed(message: Any) -> bytes:
    made: bytes = msgpack.packb(message, unicode_errors="surrogatepass")
    return made


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return the data with some bits flipped, and some bytes removed or inserted."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        where = chance.randrange(len(changed) + 1)
        match chance.randrange(3):
            case 0 if where < len(changed):
                changed[where] ^= 1 << chance.randrange(8)
            case 1:
                del changed[where : where + chance.randrange(1, 9)]
            case _:
                changed[where:where] = chance.randbytes(chance.randrange(1, 9))
    return bytes(changed)
