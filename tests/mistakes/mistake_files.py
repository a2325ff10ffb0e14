"""Mistake files: a cluster with one planted mistake, and an experienced engineer's diagnosis.

`examples/mistakes/README.md` documents the format. A file holds an expectation, generators of nodes, and manifests.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
import yaml

from kschedd.scenarios.commands import ScenarioCluster

FOLDER: Final = Path(__file__).parents[2] / "examples/mistakes"
#: Time between the last step of a file and the question, and between a remedy and its evaluation.
WAIT: Final = "300s"
#: Prefix of a command that must fail.
FAILS: Final = "fails "
_CODE: Final = re.compile(r"^  code: (\w+)", re.MULTILINE)

_EXPECT: Final = frozenset(
    {"ask", "namespace", "code", "names", "solved", "remedy", "never", "also", "shows", "replicas"}
)
_HEADER: Final = frozenset({"expect", "fix", "nodes"})
_NODES: Final = frozenset(
    {
        "name",
        "count",
        "cpu",
        "memory",
        "pods",
        "zones",
        "labels",
        "taints",
        "resources",
        "volumes",
        "devices",
        "cordoned",
    }
)


@attrs.frozen
class Expectation:
    """The expected answer of `explain ASK`.

    `also`: codes of further causes that the answer must name. `shows`: assertions that hold as long as the mistake
    exists, besides missing replicas. `never`: kinds of harm that a remedy must not do. `replicas`: the number of
    replicas to which a remedy may scale down.
    """

    ask: str
    code: str
    names: tuple[str, ...]
    solved: bool
    remedy: str
    namespace: str = "default"
    never: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    shows: tuple[str, ...] = ()
    replicas: int | None = None


@attrs.frozen
class Step:
    """`fails`: the command must fail, such as a drain that times out."""

    command: str
    given: str = ""
    fails: bool = False


@attrs.frozen
class Mistake:
    """A mistake file. `story` is the file's leading comment, `fix` the commands that solve the mistake."""

    file: Path
    story: str
    expect: Expectation
    fix: tuple[Step, ...]
    nodes: tuple[Mapping[str, Any], ...]
    steps: tuple[Step, ...]

    def build(self) -> ScenarioCluster:
        """Return a cluster in virtual time that has had the mistake for `WAIT`."""
        cluster = ScenarioCluster(self.file.parent)
        run(cluster, Step("apply", documents(self.nodes)))
        for step in self.steps:
            run(cluster, step)
        run(cluster, Step(f"advance {WAIT}"))
        return cluster


class MistakeFileError(ValueError):
    """A mistake file with an invalid format, or whose steps fail."""


def run(cluster: ScenarioCluster, step: Step) -> None:
    """Run one step. Raises MistakeFileError if it fails unexpectedly, or succeeds where it must fail."""
    result = cluster.execute(step.command, step.given)
    if bool(result.status) != step.fails or result.unread:
        raise MistakeFileError(f"{step.command}: {result.text}")


def load(file: Path) -> Mistake:
    """Read a mistake file. Raises MistakeFileError if the format is invalid."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    story = [
        line.removeprefix("#").strip() for line in lines[: next(n for n, line in enumerate(lines) if line[:1] != "#")]
    ]
    header, *rest = yaml.load_all(text, yaml.CSafeLoader)
    unknown = (set(header) - _HEADER) | (set(header["expect"]) - set(attrs.fields_dict(Expectation)))
    unknown |= {key for group in header["nodes"] for key in group} - _NODES
    if unknown:
        raise MistakeFileError(f"{file.name}: unknown fields: {', '.join(sorted(unknown))}")
    expect: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in header["expect"].items()
    }
    nodes = tuple(document for group in header["nodes"] for document in node_documents(group))
    fix = tuple(map(_step, header.get("fix", [])))
    return Mistake(file, "\n".join(story), Expectation(**expect), fix, nodes, tuple(_steps(rest)))


def mistakes() -> list[Mistake]:
    """Read all mistakes, sorted by name."""
    return [load(file) for file in sorted(FOLDER.glob("*.yaml"))]


def file_parameters() -> list[Any]:
    """Return all files as parameters of a test; the everyday run includes the first file of each cause's code."""
    made, codes = [], set[str]()
    for file in sorted(FOLDER.glob("*.yaml")):
        found = _CODE.search(file.read_text(encoding="utf-8"))
        code = found[1] if found else file.stem
        made.append(pytest.param(file, id=file.stem, marks=pytest.mark.full if code in codes else ()))
        codes.add(code)
    return made


def _step(written: str) -> Step:
    """Parse a command, which has the prefix `fails` if it must fail; the lines after it are its input."""
    command, _, given = written.strip().partition("\n")
    return Step(command.removeprefix(FAILS), given, command.startswith(FAILS))


def _steps(rest: Sequence[Any]) -> Iterator[Step]:
    """Manifests between two `do` documents are applied together."""
    objects: list[Any] = []
    for document in rest:
        if "do" not in document:
            objects.append(document)
            continue
        if objects:
            yield Step("apply", documents(objects))
        objects = []
        yield from map(_step, document["do"])
    if objects:
        yield Step("apply", documents(objects))


def documents(objects: Sequence[Mapping[str, Any]]) -> str:
    """Write objects as a stream of documents."""
    return "\n---\n".join(map(json.dumps, objects)) + "\n"


def node_documents(group: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of one generator, with their CSINodes and ResourceSlices."""
    zones = group.get("zones", [])
    for n in range(1, group.get("count", 1) + 1):
        name = f"{group['name']}-{n}"
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        if zones:
            labels["topology.kubernetes.io/zone"] = zones[(n - 1) % len(zones)]
        labels |= group.get("labels", {})
        holds = {"cpu": str(group.get("cpu", "8")), "memory": group.get("memory", "32Gi")}
        holds |= {"pods": str(group.get("pods", 110))} | group.get("resources", {})
        spec = {"taints": group["taints"]} if "taints" in group else {}
        spec |= {"unschedulable": True} if group.get("cordoned") else {}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"capacity": holds, "allocatable": holds},
        }
        if "volumes" in group:
            yield {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": name},
                "spec": {
                    "drivers": [
                        {"name": driver, "nodeID": name, "allocatable": {"count": count}}
                        for driver, count in group["volumes"].items()
                    ]
                },
            }
        if "devices" in group:
            yield _slice(name, group["devices"])


def _slice(node: str, devices: Mapping[str, Any]) -> Mapping[str, Any]:
    attributes = {key: {"string": value} for key, value in devices.get("attributes", {}).items()}
    capacity = {key: {"value": value} for key, value in devices.get("capacity", {}).items()}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{devices['driver'].partition('.')[0]}"},
        "spec": {
            "driver": devices["driver"],
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": f"{devices.get('name', 'gpu')}-{n}", "attributes": attributes, "capacity": capacity}
                for n in range(devices["count"])
            ],
        },
    }
