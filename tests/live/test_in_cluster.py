"""Tests of examples/in-cluster: the roles in it suffice for a mirror and for a scheduler, and contain nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import yaml

from kschedd.access.addresses import Address
from kschedd.access.credentials import ListenSettings
from kschedd.actors.clock import Clock
from kschedd.actors.cluster import LiveCluster
from kschedd.apiserver.serving import http_face
from kschedd.cli import main
from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.config.loading.load import default_config, load_config
from kschedd.controllers.embedded import embedded_controllers
from kschedd.daemon import cluster_actors
from kschedd.live.api_server import ApiServer
from kschedd.live.mirror import MIRRORED, MirrorActor, mirroring
from kschedd.live.remote import scheduling
from kschedd.methods import cluster_methods
from kschedd.printing.reports.scheduling import status_text
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.service.daemon.process import DaemonState
from kschedd.service.errors import RpcError
from kschedd.startup.options import without_scheduler
from tests.apiserver.asking import node, pod
from tests.live.test_mirror import KUBECONFIG, until

Raw = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "examples" / "in-cluster"
FILES = ("mirror.yaml", "scheduler.yaml")
ACCOUNT = 'token-of-{0},system:serviceaccount:kschedd:{0},1,"system:serviceaccounts,system:serviceaccounts:kschedd"\n'
ACCOUNTS = ("kschedd-mirror", "kschedd-scheduler")


def manifests(*names: str) -> list[Raw]:
    return [one for name in names for one in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))]


def of_kind(*kinds: str) -> list[Raw]:
    return [one for one in manifests(*FILES) if one["kind"] in kinds]


@asynccontextmanager
async def real_cluster(folder: Path, without: str = "") -> AsyncIterator[tuple[LiveCluster, str]]:
    """Run a cluster with RBAC and the roles of the example, without the resource `without`; yield it with its URL."""
    tokens = folder / "tokens"
    tokens.write_text("".join(ACCOUNT.format(name) for name in ACCOUNTS))
    tokens.chmod(0o600)
    settings = ListenSettings(Address("127.0.0.1", 0), token_file=tokens, rbac=True)
    parts: Raw = {"config": without_scheduler(default_config()), "controllers": embedded_controllers()}
    async with (
        cluster_actors(**parts) as cluster,
        http_face(settings.load(), cluster, "test", 3 << 20) as face,
        trio.open_nursery() as nursery,
    ):
        await nursery.start(face.run)
        for name in ("kschedd", "team-a", "team-b"):
            await cluster.store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for one in of_kind("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
            for rule in one.get("rules", ()):
                rule["resources"] = [name for name in rule["resources"] if name != without] or ["none"]
            await cluster.store.create(one)
        await cluster.store.create(node("n1"))
        yield cluster, face.url
        face.shut_down(0)


async def connected(folder: Path, url: str, account: str) -> ApiServer:
    file = folder / "kubeconfig"
    file.write_text(KUBECONFIG.format(url=url).replace("user: {}", f"user: {{token: token-of-{account}}}"))
    return await ApiServer.connect(str(file))


@asynccontextmanager
async def mirror_of(folder: Path, url: str) -> AsyncIterator[tuple[LiveCluster, MirrorActor]]:
    server = await connected(folder, url, "kschedd-mirror")
    async with server, cluster_actors() as cluster, trio.open_nursery() as nursery:
        mirror = await mirroring(server, cluster)
        await nursery.start(mirror.run)
        yield cluster, mirror
        nursery.cancel_scope.cancel()


async def test_the_mirror_may_read_all_that_it_reads_with_exactly_these_roles(tmp_path: Path) -> None:
    async with real_cluster(tmp_path) as (_, url), mirror_of(tmp_path, url) as (cluster, mirror):
        assert mirror.describe().unread == []
        assert {resource.kind for resource in mirror.followed} >= set(MIRRORED)
        assert [one.name for one in await cluster.store.list("Node")] == ["n1"]
        followed = {resource.plural for resource in mirror.followed}
    (role,) = (one for one in of_kind("ClusterRole") if one["metadata"]["name"] == "kschedd-mirror")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    granted = {name for rule in role["rules"] for name in rule["resources"]}
    assert granted - followed == {"podgroups", "workloads"}, "kinds of features that are off by default"


async def test_a_mirror_without_nodes_says_so_instead_of_explaining(tmp_path: Path) -> None:
    async with real_cluster(tmp_path, without="nodes") as (_, url), mirror_of(tmp_path, url) as (cluster, mirror):
        daemon = DaemonState("", "", 0.0, mirror=mirror.describe)
        methods = {method.name: method for method in cluster_methods(cluster, daemon)}
        for name in ("scheduler.explain", "causes.explain", "capacity.pods"):
            call: Any = None
            with pytest.raises(RpcError, match=r"may not read the nodes of .* placements are unknown"):
                await methods[name].handler(call)
        answer = mirror.describe()
        assert [(each.resource, each.kind) for each in answer.unread] == [("nodes", "Node")]
        seen = {
            "server": url,
            "context": "",
            "unheard_s": None,
            "unreachable": None,
            "release": "v1.37",
            "rules": "1",
        }
        unread = [{"resource": each.resource, "affects": each.affects} for each in answer.unread]
        text = status_text({"mirror": {**seen, "unread": unread}}, {}, TerminalStyle())
        assert "Forbidden:  nodes: do not trust all placements, explanations and capacities\n" in text
        assert "Release:    v1.37; the rules of Kubernetes 1 decide here (--kube-version)\n" in text


async def test_the_mirror_names_the_release_of_the_server_and_of_the_rules(tmp_path: Path) -> None:
    async with real_cluster(tmp_path) as (_, url), mirror_of(tmp_path, url) as (_, mirror):
        answer = mirror.describe()
        assert answer.release.startswith("v1.")
        assert answer.rules == default_config().version.patch


@pytest.mark.parametrize(
    ("release", "rules", "differs"),
    [
        pytest.param("v1.36.2", "1.37.2", True, id="another-release"),
        pytest.param("v1.37.0-gke.100", "1.37.2", False, id="another-patch"),
        pytest.param("", "1.37.2", False, id="unknown"),
    ],
)
async def test_an_explanation_names_the_releases_if_they_differ(
    tmp_path: Path, release: str, rules: str, differs: bool
) -> None:
    async with real_cluster(tmp_path) as (_, url), mirror_of(tmp_path, url) as (cluster, mirror):
        answer = attrs.evolve(mirror.describe(), release=release, rules=rules)
        daemon = DaemonState("", "", 0.0, mirror=lambda: answer)
        backend = VirtualCluster(resumed=await cluster.snapshot())
        virtual = VirtualDaemon(backend, lambda one, own: cluster_methods(one, daemon))
        notes = virtual.call("scheduler.explain", pod=pod("a"))["notes"]
    words = "the API server is of Kubernetes v1.36.2, and the rules of 1.37.2 decide here"
    assert any(note.startswith(words) for note in notes) is differs


async def test_the_scheduler_binds_pods_in_its_namespace_only(tmp_path: Path) -> None:
    (text,) = (one["data"]["scheduler.yaml"] for one in of_kind("ConfigMap"))
    config, clock = load_config(text, "scheduler.yaml"), Clock.started()
    async with real_cluster(tmp_path) as (real, url):
        server = await connected(tmp_path, url, "kschedd-scheduler")
        async with (
            server,
            scheduling(server, clock, config.leader_election, config.client_connection) as remote,
            cluster_actors(config, clock=clock, remote=remote) as cluster,
            trio.open_nursery() as nursery,
        ):
            mirror = await mirroring(server, cluster, frozenset(config.scheduler_names))
            await nursery.start(mirror.run)
            nursery.start_soon(remote.leader.run, cluster.queue)
            for namespace in ("team-b", "team-a"):
                made = pod("a")
                made["metadata"]["namespace"] = namespace
                made["spec"]["schedulerName"] = "kschedd"
                await real.store.create(made)

            async def is_bound() -> bool:
                return bool((await real.store.get("Pod", "team-a", "a")).spec.get("nodeName"))

            async def has_event() -> bool:
                return any(event.namespace == "team-a" for event in await real.store.list("Event"))

            await until(is_bound)
            await until(has_event)
            assert (await real.store.get("Lease", "kschedd", "kschedd")).spec["holderIdentity"]
            assert not (await real.store.get("Pod", "team-b", "a")).spec.get("nodeName")
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("deployment", of_kind("Deployment"), ids=lambda one: one["metadata"]["name"])
def test_the_arguments_of_the_deployments_are_valid(deployment: Raw, capsys: pytest.CaptureFixture[str]) -> None:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert main([*container["args"], "--help"]) == 0
    known = capsys.readouterr().out
    assert all(argument.partition("=")[0] in known for argument in container["args"][1:])


def test_each_manifest_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    files = [word for name in FILES for word in ("-f", str(FOLDER / name))]
    assert main(["lint", *files]) == 0, capsys.readouterr()
