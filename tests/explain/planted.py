"""Clusters in which a pod stays Pending for a reason that is known: one for each default plugin, and combinations."""

from typing import Final

import attrs


@attrs.frozen
class Planted:
    """`plugins`: all that reject `default/web` on the nodes that it would need least for, the first one first."""

    name: str
    plugins: tuple[str, ...]
    manifests: str
    advance: str = "1s"  # before asking


def node(name: str, zone: str = "a", *, labels: str = "", spec: str = "", cpu: str = "4", pods: int = 20) -> str:
    return (
        f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}, "
        f"topology.kubernetes.io/zone: {zone}{labels}}}}}, spec: {{{spec}}}, "
        f'status: {{allocatable: {{cpu: "{cpu}", memory: 8Gi, pods: "{pods}"}}, '
        f'capacity: {{cpu: "{cpu}", memory: 8Gi, pods: "{pods}"}}}}}}'
    )


def pod(name: str = "web", *, spec: str = "", labels: str = "", container: str = "", cpu: str = "1") -> str:
    only = f'{{name: c, image: i, resources: {{requests: {{cpu: "{cpu}"}}}}{container}}}'
    whole = f"{spec}{',' if spec else ''} containers: [{only}]"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{{labels}}}}}, spec: {{{whole}}}}}"


def both(*documents: str) -> str:
    return "\n---\n".join(documents)


def claim(name: str, *, storage_class: str = '""', more: str = "", mode: str = "ReadWriteOnce") -> str:
    return (
        f"{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}}}, spec: {{accessModes: [{mode}], "
        f"storageClassName: {storage_class}, resources: {{requests: {{storage: 1Gi}}}}{more}}}}}"
    )


def volume(name: str, source: str, *, of: str, labels: str = "", mode: str = "ReadWriteOnce") -> str:
    spec = f"capacity: {{storage: 1Gi}}, accessModes: [{mode}], claimRef: {{namespace: default, name: {of}}}, {source}"
    meta = f"name: {name}, labels: {{{labels}}}"
    return f"{{apiVersion: v1, kind: PersistentVolume, metadata: {{{meta}}}, spec: {{{spec}}}}}"


def storage_class(name: str, provisioner: str, mode: str) -> str:
    return (
        f"{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: {name}}}, provisioner: {provisioner}, "
        f"volumeBindingMode: {mode}}}"
    )


HOST_PATH: Final = "hostPath: {path: /data}"
USES: Final = "volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]"
PORT: Final = ", ports: [{containerPort: 80, hostPort: 8080}]"
DISK: Final = "volumes: [{name: v, awsElasticBlockStore: {volumeID: vol-1}}]"
SPREAD: Final = (
    "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: "
    "DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]"
)
NEAR: Final = (
    "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
    "topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: cache}}}]}}"
)
APART: Final = (
    "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "
    "kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}}}]}}"
)
SSD: Final = (
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: "
    "[{key: disk, operator: In, values: [ssd]}, {key: cores, operator: Gt, values: ['7']}]}]}}}"
)
GPU_CLASS: Final = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}"
GPU_CLAIM: Final = (
    "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: data}, spec: {devices: {requests: "
    "[{name: one, exactly: {deviceClassName: gpu}}]}}}"
)
GPU_TAKEN: Final = GPU_CLAIM.replace("name: data", "name: other")
GPU_SLICE: Final = (
    "{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s1}, spec: {driver: gpu.example.com, "
    "nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [{name: gpu-0}]}}"
)
USES_GPU: Final = "resourceClaims: [{name: gpu, resourceClaimName: data}]"
CSI_NODE: Final = (
    "{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n1}, spec: {drivers: [{name: csi.example.com, "
    "nodeID: n1, topologyKeys: [], allocatable: {count: 1}}]}}"
)


def csi(handle: str) -> str:
    return f"csi: {{driver: csi.example.com, volumeHandle: {handle}}}"


PLANTED: Final = (
    Planted("gate", ("SchedulingGates",), both(node("n1"), pod(spec="schedulingGates: [{name: example.com/wait}]"))),
    Planted("node-name", (), both(node("n1"), pod(spec="nodeName: n7"))),
    Planted("cordoned", ("NodeUnschedulable",), both(node("n1", spec="unschedulable: true"), pod())),
    Planted(
        "taint",
        ("TaintToleration",),
        both(node("n1", spec="taints: [{key: team, value: red, effect: NoSchedule}]"), pod()),
    ),
    Planted("selector", ("NodeAffinity",), both(node("n1"), pod(spec="nodeSelector: {disk: ssd}"))),
    Planted("affinity", ("NodeAffinity",), both(node("n1", labels=", cores: '4'"), pod(spec=SSD))),
    Planted("port", ("NodePorts",), both(node("n1"), pod("first", container=PORT), pod(container=PORT))),
    Planted("cpu", ("NodeResourcesFit",), both(node("n1", cpu="2"), pod(cpu="3"))),
    Planted("pods", ("NodeResourcesFit",), both(node("n1", pods=1), pod("first"), pod())),
    Planted("disk", ("VolumeRestrictions",), both(node("n1"), pod("first", spec=DISK), pod(spec=DISK))),
    Planted(
        "used-by-one-pod-only",
        ("VolumeRestrictions",),
        both(
            node("n1"),
            claim("data", mode="ReadWriteOncePod"),
            volume("v1", HOST_PATH, of="data", mode="ReadWriteOncePod"),
            pod("first", spec=USES),
            pod(spec=USES),
        ),
    ),
    Planted(
        "volume-limit",
        ("NodeVolumeLimits",),
        both(
            node("n1"),
            CSI_NODE,
            claim("other"),
            claim("data"),
            volume("v1", csi("h1"), of="other"),
            volume("v2", csi("h2"), of="data"),
            pod("first", spec=USES.replace("data", "other")),
            pod(spec=USES),
        ),
    ),
    Planted("no-claim", ("VolumeRestrictions",), both(node("n1"), pod(spec=USES))),
    Planted(
        "no-volume",
        ("VolumeBinding",),
        both(
            node("n1"),
            storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            claim("data", storage_class="local"),
            pod(spec=USES),
        ),
    ),
    Planted(
        "unbound-immediate",
        ("VolumeBinding",),
        both(
            node("n1"),
            storage_class("now", "kubernetes.io/no-provisioner", "Immediate"),
            claim("data", storage_class="now"),
            pod(spec=USES),
        ),
    ),
    Planted(
        "volume-elsewhere",
        ("VolumeZone",),
        both(
            node("n1", zone="a"),
            claim("data"),
            volume("v1", csi("h1"), of="data", labels="topology.kubernetes.io/zone: b"),
            pod(spec=USES),
        ),
    ),
    Planted(
        "spread-over-a-cordoned-zone",
        ("NodeUnschedulable",),
        both(
            node("a1", "a"),
            node("b1", "b", spec="unschedulable: true"),
            pod("first", labels="app: web"),
            pod(labels="app: web", spec=SPREAD),
        ),
    ),
    Planted(
        "too-skewed",
        ("PodTopologySpread",),
        both(
            node("a1", "a"),
            node("b1", "b", pods=1),
            pod("full", spec="nodeName: b1"),
            pod("first", labels="app: web", spec="nodeSelector: {topology.kubernetes.io/zone: a}"),
            pod(labels="app: web", spec=SPREAD),
        ),
    ),
    Planted("nobody-near", ("InterPodAffinity",), both(node("n1"), pod(spec=NEAR))),
    Planted("somebody-near", ("InterPodAffinity",), both(node("n1"), pod("db", labels="app: db"), pod(spec=APART))),
    Planted(
        "shunned",
        ("InterPodAffinity",),
        both(node("n1"), pod("hermit", spec=APART.replace("db", "web")), pod(labels="app: web")),
    ),
    Planted(
        "no-device",
        ("DynamicResources",),
        both(
            node("n1"),
            GPU_CLASS,
            GPU_SLICE,
            GPU_TAKEN,
            GPU_CLAIM,
            pod("first", spec=USES_GPU.replace("data", "other")),
            pod(spec=USES_GPU),
        ),
    ),
    Planted("no-device-class", ("DynamicResources",), both(node("n1"), GPU_CLAIM, GPU_SLICE, pod(spec=USES_GPU))),
    Planted(
        "taint-label-and-cpu",
        ("TaintToleration", "NodeAffinity", "NodeResourcesFit"),
        both(
            node("n1", cpu="2", spec="taints: [{key: team, value: red, effect: NoSchedule}]"),
            pod(cpu="3", spec="nodeSelector: {disk: ssd}"),
        ),
    ),
    Planted(
        "gate-and-cordon",
        ("SchedulingGates", "NodeUnschedulable"),
        both(node("n1", spec="unschedulable: true"), pod(spec="schedulingGates: [{name: example.com/wait}]")),
    ),
    Planted(
        "port-and-anti-affinity",
        ("NodePorts", "InterPodAffinity"),
        both(
            node("n1"),
            pod("first", container=PORT),
            pod("db", labels="app: db"),
            pod(container=PORT, spec=APART),
        ),
    ),
    Planted("not-ready", ("TaintToleration",), both(node("n1")), "1s"),
)
