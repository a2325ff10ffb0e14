"""Files with the clusters and workloads for comparisons of Kubernetes versions (`tests.bench.comparisons`).

Each cluster is the output of `save` for a cluster in virtual time with the decisions of 1.34 and the seed 1:

    demo        examples/demo
    shop        the Online Boutique on the two zones of examples/clusters
    gpus        the GPU trace of Alibaba (2023): 1,523 nodes and the pods that were there on its 145th day
    large       5,000 nodes and 50,000 pods of 250 templates, most of which say nothing but what they request

Generated objects depend on a seed, so that the files are always the same. The shop and the GPU trace are read from
the shared folder.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from kschedd.api.manifests import read_paths
from kschedd.bench.shared import shared_folder
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34
from kschedd.controllers.embedded import embedded_controllers
from kschedd.controllers.running.controller import Controller
from kschedd.dumps.saving import dump_objects, write_dump
from kschedd.framework.registry import Registry
from kschedd.simulation.formats.reading import read_trace
from kschedd.simulation.simulation import Simulation
from kschedd.simulation.workloads.trace import Trace

Raw = dict[str, Any]

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
START_S: Final = 1.75e9
DAY_S: Final = 86_400.0
TRACE_DAY: Final = 145
KINDS: Final = ("Namespace", "PriorityClass", "Node", "Deployment", "ReplicaSet", "Pod", "Service", "ConfigMap")

TEMPLATES: Final = 250
PLAIN: Final = 200  # number of plain templates; the others are of the kinds in `_special`
ZONE: Final = "topology.kubernetes.io/zone"
_SIZES: Final = (("8", "32Gi"), ("16", "64Gi"), ("32", "128Gi"), ("64", "256Gi"))
_REQUESTS: Final = ("100m", "250m", "500m", "1", "1500m", "2")
_MEMORY: Final = ("128Mi", "512Mi", "1Gi", "2Gi", "4Gi", "8Gi")


class AbsentInput(Exception):
    """The error if a file of the shared folder is missing."""


def realworld(*parts: str) -> Path:
    """Return the path of a file of real input; raise AbsentInput if it does not exist."""
    shared = shared_folder()
    path = None if shared is None else shared.joinpath("realworld", *parts)
    if path is None or not path.is_file():
        raise AbsentInput(f"realworld/{'/'.join(parts)} is not in the shared folder")
    return path


def boutique() -> Path:
    return realworld("online-boutique", "kubernetes-manifests.yaml")


def gpu_trace() -> Trace:
    folder = "alibaba-gpu-2023"
    return read_trace(realworld(folder, "node_list_all.csv"), realworld(folder, "pod_list_default.csv"))


# -- clusters that have come to rest ----------------------------------------------------------------------------------


def settled(path: Path, *manifests: Path) -> Path:
    """Write the cluster that results from these manifests, with controllers and kubelets, when no work is pending."""
    simulation = _simulation(embedded_controllers())
    applied = simulation.load(read_paths(list(manifests)))
    assert not applied.errors, applied.errors
    simulation.finish(600)
    return _written(path, simulation)


def gpus(path: Path, day: int = TRACE_DAY) -> Path:
    """Write the state of the GPU trace on this day."""
    simulation = _simulation()
    simulation.play(gpu_trace(), until_s=day * DAY_S)
    return _written(path, simulation)


def large(path: Path, nodes: int = 5_000, pods: int = 50_000) -> Path:
    """Write many nodes and pods, with each pod on its scheduled node."""
    simulation = _simulation()
    for raw in large_nodes(nodes):
        simulation.store.apply(raw)
    for raw in large_pods("app", pods):
        simulation.store.create(raw)
    simulation.finish()
    return _written(path, simulation)


def _simulation(controllers: Iterable[Controller] = ()) -> Simulation:
    config = default_config(version=V1_34)
    return Simulation(config, seed=1, registry=Registry(), controllers=[*controllers], start_s=START_S)


def _written(path: Path, simulation: Simulation) -> Path:
    objects = (dict(each.raw) for kind in KINDS for each in simulation.store.list(kind))
    write_dump(path, dump_objects(objects), force=True)
    return path


# -- what is generated ------------------------------------------------------------------------------------------------


def large_nodes(count: int) -> Iterator[Raw]:
    """Return nodes of four sizes in three zones; every tenth node is tainted."""
    for number in range(count):
        cpu, memory = _SIZES[number % len(_SIZES)]
        labels = {
            "kubernetes.io/hostname": f"node-{number:04}",
            ZONE: f"zone-{'abc'[number % 3]}",
            "disk": "ssd" if number % 2 else "hdd",
        }
        room = {"cpu": cpu, "memory": memory, "pods": "110"}
        taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": labels["kubernetes.io/hostname"], "labels": labels},
            "spec": {"taints": [taint]} if number % 10 == 0 else {},
            "status": {
                "allocatable": room,
                "capacity": room,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def large_pods(prefix: str, count: int) -> Iterator[Raw]:
    """Return pods of `TEMPLATES` templates in turn."""
    random = Random(1)
    templates = [_template(prefix, number, random) for number in range(TEMPLATES)]
    for number in range(count):
        template = templates[number % TEMPLATES]
        app = template["metadata"]["labels"]["app"]
        yield {**template, "metadata": {**template["metadata"], "name": f"{app}-{number // TEMPLATES}"}}


def _template(prefix: str, number: int, random: Random) -> Raw:
    app = f"{prefix}-{number:03}"
    requests = {"cpu": random.choice(_REQUESTS), "memory": random.choice(_MEMORY)}
    container = {"name": "main", "image": f"registry.example/{app}:1", "resources": {"requests": requests}}
    special = {} if number < PLAIN else _special(number, {"matchLabels": {"app": app}})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "labels": {"app": app}},
        "spec": {"containers": [container], **special},
    }


def _special(number: int, selector: Raw) -> Raw:
    """Return the special requirements of the remaining templates, of five kinds in turn."""
    hosts = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    spread = {"maxSkew": 1, "topologyKey": ZONE, "labelSelector": selector}
    kinds: tuple[Raw, ...] = (
        {"nodeSelector": {"disk": "ssd"}},
        {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        {"topologySpreadConstraints": [{**spread, "whenUnsatisfiable": "DoNotSchedule"}]},
        {"topologySpreadConstraints": [{**spread, "whenUnsatisfiable": "ScheduleAnyway"}]},
        {
            "affinity": {
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": hosts}]
                }
            }
        },
    )
    return kinds[number % len(kinds)]


def workload(path: Path, pods: Iterable[Raw]) -> Path:
    """Return pods as manifests that can be applied to a cluster."""
    write_dump(path, pods, force=True)
    return path
