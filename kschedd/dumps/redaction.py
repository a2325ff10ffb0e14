"""Redaction of a dump: every text that is not known to be public is replaced by made-up words.

The schema of each kind defines which fields are numbers, quantities, times or texts. Numbers, quantities, times,
booleans, the words of the API (`api_words`), UIDs and names defined by Kubernetes are not replaced. Every other text is
replaced by made-up words (`made_up_words`): equal texts by equal words, and in the same order. References between
objects and the scheduler's decisions therefore stay the same.

Texts that no decision reads are dropped: commands, environment variables, messages, addresses, parameters, and the data
of Secrets and ConfigMaps. Annotations are dropped, except valid ones that control the simulation (without logs) and
those of Kubernetes that controllers read. Objects of kinds that no decision reads keep only their metadata (and the
scale).

CEL expressions, and the drivers and attributes of devices in them, are replaced as long as every expression still
selects the same devices (`device_words`); `Redaction.kept` contains those that are not replaced. Objects that
controllers create at the same time may be in another order than without redaction.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import available_timezones

from kschedd.api.objects import Raw
from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.kinds import BY_NAME, KINDS, group_of, kind_of
from kschedd.api.schemas.schema import (
    ANY,
    BYTES,
    INT_OR_STR,
    MICRO_TIME,
    QUANTITY,
    STR,
    TIME,
    Fields,
    ListOf,
    MapOf,
    Schema,
    type_named,
)
from kschedd.api.simulation.annotations import LOGS, PREFIX, is_setting
from kschedd.dumps.api_words import API_WORDS
from kschedd.dumps.made_up_words import MadeUpWords, is_kept, is_quantity

if TYPE_CHECKING:
    from kschedd.dumps.device_words import DeviceWords

_DROPPED: Final = frozenset(
    (
        "env envFrom command args lifecycle livenessProbe readinessProbe startupProbe securityContext workingDir "
        "terminationMessagePath message hostAliases dnsConfig imagePullSecrets containerStatuses podIP podIPs hostIP "
        "hostIPs initContainerStatuses ephemeralContainerStatuses addresses podCIDR podCIDRs providerID managedFields "
        "clusterIP clusterIPs externalIPs loadBalancer loadBalancerIP externalName selfLink nodeInfo volumesInUse "
        "volumeAttributes nodePublishSecretRef nodeStageSecretRef controllerPublishSecretRef parameters annotations "
        "volumeMounts volumeDevices hostname subdomain setHostnameAsFQDN secrets secretName volumesAttached "
        "configMap secret projected downwardAPI description mountOptions loadBalancerSourceRanges hostnameOverride "
        "controllerExpandSecretRef nodeExpandSecretRef attachmentMetadata networkData config configSource networkName "
        "externalID tokenRequests healthCheckNodePort sessionAffinityConfig loadBalancerClass signature data"
    ).split()
)
_DECIDING: Final = frozenset(
    (
        "Namespace Node Pod Service ReplicationController ResourceQuota PersistentVolume PersistentVolumeClaim "
        "LimitRange PodTemplate ReplicaSet StatefulSet Deployment DaemonSet ControllerRevision Job CronJob "
        "PodDisruptionBudget PriorityClass RuntimeClass StorageClass CSINode CSIDriver CSIStorageCapacity "
        "VolumeAttachment Lease ResourceSlice ResourceClaim ResourceClaimTemplate DeviceClass"
    ).split()
)
"""Kinds that the scheduler, its plugins, admission or a controller reads."""
_BY_NAME: Final = frozenset(("Secret", "ConfigMap", "ServiceAccount"))
"""Kinds of which only the existence of an object matters."""
_KEYS: Final = frozenset(
    "key topologyKey topologyKeys matchLabelKeys mismatchLabelKeys finalizers conditionType".split()
)
_RESOURCES: Final = frozenset(("resourceName", "extendedResourceName", "resource"))
_DRIVERS: Final = frozenset(("driver", "provisioner", "attacher"))
_ATTRIBUTES: Final = frozenset(("matchAttribute", "distinctAttribute"))
_OF_ATTRIBUTE: Final = frozenset(("string", "version"))
_LABELS: Final = frozenset(("labels", "matchLabels", "nodeSelector", "selector"))
_NAMING: Final = frozenset(PREFIX + name for name in "cloud-zone cloud-region cloud-instance-type pool".split())
"""Annotations of the simulation that contain a name of the cluster."""
_STATING: Final = frozenset(
    PREFIX + name
    for name in (
        "kubelet made-up wanted-pods price cloud-provider cloud-init-seconds provision-seconds provision-fails "
        "renewed-every-seconds"
    ).split()
)
"""Annotations of the simulation whose values are numbers or `_STATES`."""
_STATES: Final = frozenset(("external", "false", "never", "none", "stopped", "true"))
_READ: Final = (
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "pv.kubernetes.io/",
    "resource.kubernetes.io/",
    "storageclass.kubernetes.io/is-default-class",
    "deployment.kubernetes.io/revision",
    "controller.kubernetes.io/pod-deletion-cost",
    "kubernetes.io/config.mirror",
    "deprecated.daemonset.template.generation",
)
"""Prefixes of annotations that controllers and the scheduler read."""
_GROUPS: Final = frozenset(kind.group for kind in KINDS)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.,]+(Z|[+-]\d\d:\d\d)")
_VERSION: Final = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?")
_PERCENT: Final = re.compile(r"[0-9]+%")
_SCHEDULE: Final = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[-0-9*/,? ]+")
_DEVICES: Final = re.compile(r"resource\.v1(beta\d)?\.")
DEFINITION: Final = "CustomResourceDefinition"
_SCHEDULING: Final = "scheduling.k8s.io"  # the group of PodGroup and Workload, which have no schema in kschedd


class Redaction:
    """The redaction of one dump.

    The redaction is built from all objects of the dump, because all words must be known before the first one is
    replaced. `resources`: also replace names of extended resources, of drivers and of kinds. By default these names are
    not replaced, because a configuration that is used with the objects may contain them.
    """

    def __init__(self, objects: Iterable[Raw], *, resources: bool = False) -> None:
        everything = list(objects)
        self._words = MadeUpWords(everything, _DROPPED - {"data", "annotations"}, resources=resources)
        self.expressions = {text: place for raw in everything for text, place in _expressions(raw)}
        """The CEL expressions, each with the object that contains it."""
        self._scaled = {
            (str(raw["spec"].get("group")), str((raw["spec"].get("names") or {}).get("kind"))): path
            for raw in everything
            if raw["kind"] == DEFINITION and (path := _replicas_path(raw))
        }
        self._devices: DeviceWords | None = None  # None: names of devices and expressions are not replaced
        if resources:
            # imported on demand, because it evaluates CEL, which few commands need
            from kschedd.dumps.device_words import device_words

            self._devices = device_words(everything, self.expressions, self._words.text, self._device)

    @property
    def kept(self) -> list[str]:
        """Return a sentence for each kind of text of the cluster that is not replaced."""
        devices = self._devices
        everything = devices is None or devices.stays is None
        kept = self.expressions if devices is None or devices.stays is None else devices.kept
        places = sorted({self.expressions[one] for one in kept})
        if not places:
            return []
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        names = "drivers, attributes and capacities"
        with_them = f"the names of {names} of all devices" if everything else f"the {names} that they name"
        return [
            f"CEL expressions of {', '.join(places[:3])}{more} are kept, and {with_them} with them: with made-up words "
            "they would select other devices"
        ]

    def _device(self, words: "DeviceWords", raw: Raw) -> Raw:
        """Return a device of a ResourceSlice with made-up words."""
        self._devices = words
        return self._fields(raw, type_named("resource.v1.Device"))

    def redacted(self, raw: Raw) -> dict[str, Any]:
        """Return the object with all confidential texts replaced or removed."""
        kind = kind_of(raw)
        meta = self._fields(raw.get("metadata") or {}, type_named("meta.ObjectMeta"))
        if kind.name in ("CSIDriver", "CSINode") and "name" in meta:
            given = str(raw["metadata"]["name"])
            meta["name"] = self._words.driver(given) if kind.name == "CSIDriver" else self._words.text(given)
        if notes := self._annotations(raw["metadata"].get("annotations") or {}):
            meta["annotations"] = notes
        done: dict[str, Any] = {
            "apiVersion": self._version(str(raw["apiVersion"])),
            "kind": self._kind(str(raw["kind"])),
            "metadata": meta,
        }
        rest = {name: value for name, value in raw.items() if name not in ("apiVersion", "kind", "metadata")}
        if kind.name in _DECIDING and (schema := schema_for(dict(raw))) is not None:
            done.update(self._fields(rest, schema))
            if kind.name == "ControllerRevision" and isinstance(raw.get("data"), Mapping):
                done["data"] = self._revision(raw["data"])
        elif kind.name == DEFINITION and _replicas_path(raw):
            done.update(self._definition(rest))
        elif path := self._scaled.get((group_of(str(raw["apiVersion"])), str(raw["kind"]))):
            count: Any = raw
            for step in path:
                count = count.get(step) if isinstance(count, Mapping) else None
            done["spec"] = {"replicas": count} if isinstance(count, int) else {}
        elif group_of(str(raw["apiVersion"])) == _SCHEDULING:
            done.update(self._loose(rest, ""))
        return done

    def value(self, value: Any) -> Any:
        """Return a redacted part of an object, such as an affinity."""
        return self._loose(value, "")

    def text(self, text: str) -> str:
        """Return the text with the confidential words replaced by made-up words."""
        return self._words.text(text) if isinstance(text, str) else text

    def keeps(self, word: str) -> bool:
        """Return whether the word is never replaced."""
        return is_kept(word)

    def _definition(self, rest: Raw) -> dict[str, Any]:
        """Return the names in a definition of a scalable kind, and the path of the scale in a redacted object."""
        spec = rest["spec"]
        given = spec.get("names") or {}
        names = {field: self.text(str(given[field])) for field in ("plural", "singular", "kind") if field in given}
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        versions = [
            {
                "name": version["name"] if _VERSION.fullmatch(str(version["name"])) else self.text(version["name"]),
                "served": bool(version.get("served")),
                "storage": bool(version.get("storage")),
                "schema": schema,
                "subresources": {"scale": scale},
            }
            for version in spec["versions"]
        ]
        accepted = [{"type": each, "status": "True"} for each in ("NamesAccepted", "Established")]
        stored = [version["name"] for version in versions if version["storage"]]
        scope = "Cluster" if spec.get("scope") == "Cluster" else "Namespaced"
        return {
            "spec": {"group": self.text(str(spec.get("group"))), "scope": scope, "names": names, "versions": versions},
            "status": {"conditions": accepted, "acceptedNames": names, "storedVersions": stored},
        }

    def _annotations(self, annotations: Any) -> dict[str, str]:
        """Return the annotations that control the simulation, or that controllers and the scheduler read."""
        found: dict[str, str] = {}
        for key, text in annotations.items() if isinstance(annotations, Mapping) else ():
            if key.startswith(PREFIX):
                found |= self._simulating(key, str(text))
            elif key.startswith(_READ) and isinstance(text, str):
                if key.endswith("provisioner") or key.endswith("provisioned-by"):
                    found[key] = self._words.driver(text)
                else:
                    found[key] = text if text in ("yes", "no") else self.text(text)
        return found

    def _simulating(self, key: str, text: str) -> dict[str, str]:
        """Return the redacted annotation that controls the simulation; {} drops it."""
        if key in _NAMING:
            return {key: self.text(text)}
        if key in _STATING:
            return {key: text} if text in _STATES or is_quantity(text) else {}
        setting, dot, container = key.partition("/")[2].partition(".")
        if PREFIX + setting == LOGS or not is_setting(key, text):
            return {}
        return {f"{PREFIX}{setting}{dot}{self.text(container)}": text}

    def _fields(self, value: Any, schema: Fields) -> dict[str, Any]:
        """Return the fields that the schema defines; other fields are dropped."""
        if not isinstance(value, Mapping):
            return {}
        done = {}
        for name, inner in value.items():
            if name in schema and name not in _DROPPED and inner is not None:
                new = self._by_schema(inner, schema[name], name, schema)
                if new is not None:
                    done[name] = new
        return done

    def _by_schema(self, value: Any, schema: Schema, name: str, around: Fields) -> Any:
        if isinstance(schema, Fields):
            return self._fields(value, schema)
        if isinstance(schema, ListOf):
            if not isinstance(value, list):
                return None
            found = (self._by_schema(each, schema.item, name, around) for each in value)
            return [each for each in found if each is not None]
        if isinstance(schema, MapOf):
            return self._map(value, schema, name, around) if isinstance(value, Mapping) else None
        if isinstance(value, bool | int | float):
            return value
        return self._leaf(value, schema, name, around) if isinstance(value, str) else None

    def _map(self, value: Mapping[str, Any], schema: MapOf, name: str, around: Fields) -> dict[str, Any]:
        turn: Callable[[str], str]
        if _DEVICES.match(around.name):
            turn = self._attribute if name in ("attributes", "capacity", "requests", "consumedCapacity") else self.text
        else:
            turn = self._words.key if schema.item is STR else self._words.resource
        if turn == self._attribute and name == "attributes" and (devices := self._devices) is not None:
            stays = [key for key in value if devices.keeps_value_of(key)]
            kept = {turn(key): dict(value[key]) for key in stays if isinstance(value[key], Mapping)}
            value = {key: each for key, each in value.items() if key not in stays}
            return kept | {turn(key): self._by_schema(each, schema.item, "", around) for key, each in value.items()}
        return {turn(key): self._by_schema(each, schema.item, "", around) for key, each in value.items()}

    def _leaf(self, text: str, schema: Schema, name: str, around: Fields) -> str | None:
        """Return the redacted text of a field's value; None drops the field."""
        if schema is QUANTITY:
            return text if is_quantity(text) else None
        if schema is TIME or schema is MICRO_TIME:
            return text if _TIME.fullmatch(text) else None
        if schema is INT_OR_STR:
            return text if _PERCENT.fullmatch(text) else self.text(text)
        if schema is BYTES or schema is ANY:
            return None
        if name == "expression" and _DEVICES.match(around.name):
            return text if self._devices is None else self._devices.expression(text)
        if _DEVICES.match(around.name):
            if name in _ATTRIBUTES or name in _DRIVERS:
                return self._attribute(text)
            if name in _OF_ATTRIBUTE:
                return text if self._devices is None else self.text(text)
        if name in _DRIVERS or (name == "name" and around.name == "storage.v1.CSINodeDriver"):
            return self._words.driver(text)
        return self._named(text, name)

    def _named(self, text: str, name: str) -> str | None:
        """Return the redacted text of a value, decided only by the name of its field; None drops the field."""
        if text in API_WORDS:
            return text
        if name == "apiVersion":
            return self._version(text)
        if name == "kind":
            return self._kind(text)
        if name in ("apiGroup", "group"):
            return text if text in _GROUPS else self._words.kind(text)
        if name in _RESOURCES:
            return self._words.resource(text)
        if name in _KEYS:
            return self._words.key(text)
        if name in ("image", "names"):
            return self._words.image(text)
        if name == "schedule":
            return text if _SCHEDULE.fullmatch(text) else self.text(text)
        if name == "timeZone":
            return text if text in available_timezones() else None
        return self.text(text)

    def _attribute(self, name: str) -> str:
        return name if self._devices is None else self._devices.name(name)

    def _version(self, text: str) -> str:
        group, slash, version = text.rpartition("/")
        shown = version if _VERSION.fullmatch(version) else self.text(version)
        return f"{group if group in _GROUPS else self._words.kind(group)}{slash}{shown}"

    def _kind(self, text: str) -> str:
        return text if text in BY_NAME or text in ("PodGroup", "Workload") else self._words.kind(text)

    def _revision(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the previous template of a StatefulSet or DaemonSet, as a strategic merge patch that replaces it."""
        template = (data.get("spec") or {}).get("template") if isinstance(data.get("spec"), Mapping) else None
        if not isinstance(template, Mapping):
            return {}
        done = self._fields(template, type_named("PodTemplateSpec"))
        if template.get("$patch") == "replace":
            done["$patch"] = "replace"
        return {"spec": {"template": done}}

    def _loose(self, value: Any, name: str) -> Any:
        """Return a value without a known schema, redacted by the names of its fields."""
        if isinstance(value, Mapping):
            if name in _LABELS and all(isinstance(text, str) for text in value.values()):
                return {self._words.key(key): self.text(text) for key, text in value.items()}
            return {key: self._loose(inner, key) for key, inner in value.items() if key not in _DROPPED}
        if isinstance(value, list):
            return [self._loose(each, name) for each in value]
        return self._named(value, name) if isinstance(value, str) else value


def _replicas_path(definition: Raw) -> tuple[str, ...]:
    """Return the path of the replica count in objects of a definition; empty if the objects cannot be scaled."""
    spec = definition.get("spec")
    for version in spec.get("versions") or () if isinstance(spec, Mapping) else ():
        scale = (version.get("subresources") or {}).get("scale") if isinstance(version, Mapping) else None
        if isinstance(scale, Mapping) and (path := str(scale.get("specReplicasPath") or "")):
            return tuple(path.removeprefix(".").split("."))
    return ()


def _expressions(raw: Raw) -> list[tuple[str, str]]:
    """Return the CEL expressions that select devices, each with the kind and name of its object."""
    if not _DEVICES.match(str(raw.get("apiVersion")).replace("resource.k8s.io/", "resource.") + "."):
        return []
    place = f"{raw['kind']} {(raw.get('metadata') or {}).get('name')}"
    found: list[tuple[str, str]] = []
    left: list[Any] = [raw.get("spec")]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            if isinstance(cel := value.get("cel"), Mapping) and isinstance(cel.get("expression"), str):
                found.append((cel["expression"], place))
            left += value.values()
        elif isinstance(value, list):
            left += value
    return found


def redacted(objects: Iterable[Raw]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a redacted dump, and sentences about the texts that were not replaced and the texts that were dropped."""
    everything = list(objects)
    redaction = Redaction(everything, resources=True)
    done: list[dict[str, Any]] = []
    left_out: dict[str, int] = {}
    for raw in everything:
        kind = kind_of(raw)
        if (
            kind.known
            and kind.name not in _DECIDING | _BY_NAME
            and not (kind.name == DEFINITION and _replicas_path(raw))
        ):
            left_out[kind.plural] = left_out.get(kind.plural, 0) + 1
        else:
            done.append(redaction.redacted(raw))
    kept = redaction.kept
    if left_out:
        counted = ", ".join(f"{count:,} {plural}" for plural, count in sorted(left_out.items()))
        kept.append(f"left out, since no decision reads them: {counted}")
    return done, kept
