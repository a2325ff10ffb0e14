"""Objects built from flags without a daemon, for `create KIND NAME`, `run` and `expose` as in kubectl.

Each function of `GENERATORS` receives the arguments of the verb and returns a manifest without a namespace.
Raises UsageError.

Source: Kubernetes v1.34, kubectl pkg/cmd/create and pkg/cmd/run.
"""

import argparse
import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kschedd.api.text.numbers import whole_number
from kschedd.api.text.similar import allowed_names
from kschedd.verbs.command_line.grammar import UsageError

Raw = dict[str, Any]

_SERVICE_TYPES: Final = {
    "clusterip": "ClusterIP",
    "nodeport": "NodePort",
    "loadbalancer": "LoadBalancer",
    "externalname": "ExternalName",
}


def assignments(words: Sequence[str], example: str) -> dict[str, str]:
    """Return `KEY=VALUE` words as a map."""
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f'"{word}" is not KEY=VALUE, such as {example}')
        found[key] = value
    return found


def listed(text: str | None, example: str) -> dict[str, str]:
    """Return `KEY=VALUE,KEY=VALUE` as a map, which may be empty."""
    return assignments(text.split(","), example) if text else {}


def _manifest(api_version: str, kind: str, name: str, **fields: Any) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def container_of(name: str, image: str, options: argparse.Namespace) -> Raw:
    container: Raw = {"name": name, "image": image}
    if options.command_words:
        container["command"] = list(options.command_words)
    if getattr(options, "requests", None):
        container["resources"] = {"requests": listed(options.requests, "--requests cpu=100m")}
    if getattr(options, "port", None):
        container["ports"] = [{"containerPort": options.port}]
    return container


def _images(options: argparse.Namespace, *, most: int | None = None) -> list[str]:
    if not options.image:
        raise UsageError('required flag(s) "image" not set: --image IMAGE')
    if most is not None and len(options.image) > most:
        raise UsageError("only one --image is taken here")
    return list(options.image)


def namespace(name: str, options: argparse.Namespace, folder: Path) -> Raw:
    return _manifest("v1", "Namespace", name)


def service_account(name: str, options: argparse.Namespace, folder: Path) -> Raw:
    return _manifest("v1", "ServiceAccount", name)


def deployment(name: str, options: argparse.Namespace, folder: Path) -> Raw:
    images = _images(options)
    if len(images) > 1 and options.command_words:
        raise UsageError("cannot specify multiple --image options and command")
    labels = {"app": name}
    containers: list[Raw] = []
    for image in images:
        base = re.sub(r"[^a-z0-9-]", "-", re.split(r"[:@]", image.rpartition("/")[2])[0].lower()).strip("-")
        taken = {container["name"] for container in containers}
        numbers = (f"{base}-{number}" for number in range(2, len(images) + 2))
        unique = base if base not in taken else next(text for text in numbers if text not in taken)
        containers.append(container_of(unique, image, options))
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": options.replicas, "selector": {"matchLabels": labels}, "template": template}
    made = _manifest("apps/v1", "Deployment", name, spec=spec)
    made["metadata"]["labels"] = labels
    return made


def job(name: str, options: argparse.Namespace, folder: Path) -> Raw:
    (image,) = _images(options, most=1)
    pod = {"containers": [container_of(name, image, options)], "restartPolicy": "Never"}
    return _manifest("batch/v1", "Job", name, spec={"template": {"spec": pod}})


def job_of_cron_job(name: str, cron_job: Raw) -> Raw:
    """Return a Job made from a CronJob's template, as `create job --from=cronjob/NAME` does."""
    template = cron_job["spec"]["jobTemplate"]
    meta = template.get("metadata") or {}
    owner = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": cron_job["metadata"]["name"],
        "uid": cron_job["metadata"]["uid"],
        "controller": True,
    }
    made = _manifest("batch/v1", "Job", name, spec=template["spec"])
    made["metadata"] |= {
        "annotations": {"cronjob.kubernetes.io/instantiate": "manual", **(meta.get("annotations") or {})},
        "labels": dict(meta.get("labels") or {}),
        "ownerReferences": [owner],
    }
    return made


def cron_job(name: str, options: argparse.Namespace, folder: Path) -> Raw:
    (image,) = _images(options, most=1)
    if not options.schedule:
        raise UsageError('required flag(s) "schedule" not set; for example: --schedule "*/5 * * * *"')
    pod = {"containers": [container_of(name, image, options)], "restartPolicy": options.restart or "OnFailure"}
    of_job = {"metadata": {"name": name}, "spec": {"template": {"spec": pod}}}
    return _manifest("batch/v1", "CronJob", name, spec={"schedule": options.schedule, "jobTemplate": of_job})


def priority_class(name: str, options: argparse.Namespace, folder: Path) -> Raw:
    if options.value is None:
        raise UsageError("--value N is required for a priority class")
    made = _manifest("scheduling.k8s.io/v1", "PriorityClass", name, value=options.value)
    made |= {"globalDefault": options.global_default, "description": options.description}
    return made | {"preemptionPolicy": options.preemption_policy}


def pod_disruption_budget(name: str, options: argparse.Namespace, folder: Path) -> Raw:
    least, most = options.min_available, options.max_unavailable
    if least is None and most is None:
        raise UsageError("one of min-available or max-unavailable must be specified")
    if least is not None and most is not None:
        raise UsageError("min-available and max-unavailable cannot be both specified")
    if not options.selector:
        raise UsageError("a selector must be specified: --selector app=web")
    spec: Raw = {"selector": {"matchLabels": listed(options.selector, "--selector app=web")}}
    given = least if least is not None else most
    spec["minAvailable" if least is not None else "maxUnavailable"] = _number_or_text(given)
    return _manifest("policy/v1", "PodDisruptionBudget", name, spec=spec)


def resource_quota(name: str, options: argparse.Namespace, folder: Path) -> Raw:
    spec: Raw = {"hard": listed(options.hard, "--hard pods=2,requests.cpu=1")}
    if options.scopes:
        spec["scopes"] = options.scopes.split(",")
    return _manifest("v1", "ResourceQuota", name, spec=spec)


def config_map(name: str, options: argparse.Namespace, folder: Path) -> Raw:
    text: dict[str, str] = {}
    binary: dict[str, str] = {}
    for key, data in _data(options, folder).items():
        try:
            text[key] = data.decode()
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(data).decode()
    made = _manifest("v1", "ConfigMap", name)
    if text:
        made["data"] = text
    if binary:
        made["binaryData"] = binary
    return made


def secret(name: str, options: argparse.Namespace, folder: Path) -> Raw:
    data = {key: base64.b64encode(value).decode() for key, value in _data(options, folder).items()}
    made = _manifest("v1", "Secret", name, **({"data": data} if data else {}))
    return made | ({"type": options.type} if options.type else {})


def _data(options: argparse.Namespace, folder: Path) -> dict[str, bytes]:
    """Return the entries of --from-literal, --from-file and --from-env-file."""
    found: dict[str, bytes] = {}

    def add(key: str, value: bytes) -> None:
        if key in found:
            raise UsageError(f'cannot add key "{key}", another key by that name already exists')
        found[key] = value

    for word in options.from_literal:
        for key, value in assignments([word], "--from-literal key=value").items():
            add(key, value.encode())
    try:
        for word in options.from_file:
            for key, file in _files(word, folder):
                add(key, file.read_bytes())
        for path in options.from_env_file:
            for line in (folder / path).read_text("utf-8").splitlines():
                if line.strip() and not line.lstrip().startswith("#"):
                    key, _, value = line.lstrip().partition("=")
                    add(key, value.encode())
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"cannot be read: {wrong}") from wrong
    return found


def _files(word: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the key and the file for a `[KEY=]PATH` of --from-file; for a folder, one pair for each of its files."""
    key, equals, path = word.rpartition("=")
    file = folder / path
    if not file.is_dir():
        yield key if equals else file.name, file
        return
    if equals:
        raise UsageError(f"{path}: a key is given, but this is a folder")
    for one in sorted(file.iterdir()):
        if one.is_file():
            yield one.name, one


def service(sort: str, name: str, options: argparse.Namespace) -> Raw:
    """Return the Service of `create service clusterip|nodeport|loadbalancer|externalname NAME`."""
    if sort.lower() not in _SERVICE_TYPES:
        raise UsageError(f'create service: unknown type "{sort}"{allowed_names(sort, _SERVICE_TYPES)}')
    kind = _SERVICE_TYPES[sort.lower()]
    labels = {"app": name}
    spec: Raw = {"type": kind, "selector": labels}
    if kind == "ExternalName":
        if not options.external_name:
            raise UsageError("an external service needs --external-name HOST")
        spec["externalName"] = options.external_name
    elif not options.tcp:
        raise UsageError("at least one tcp port specifier must be provided: --tcp 80:8080")
    spec["ports"] = [_port(word) for word in options.tcp]
    if options.node_port and kind == "NodePort":
        spec["ports"][0]["nodePort"] = options.node_port
    made = _manifest("v1", "Service", name, spec=spec)
    made["metadata"]["labels"] = labels
    return made


def _port(word: str) -> Raw:
    port, colon, target = word.partition(":")
    number = whole_number(port)
    if number is None:
        raise UsageError(f'"{word}": expected a port, such as --tcp 80 or --tcp 80:8080')
    to = _number_or_text(target) if colon else number
    return {"name": f"{port}-{target}" if colon else port, "protocol": "TCP", "port": number, "targetPort": to}


def _number_or_text(text: str) -> int | str:
    number = whole_number(text)
    return text if number is None else number


def pod(name: str, options: argparse.Namespace) -> Raw:
    """Return the pod that `run` creates."""
    (image,) = _images(options, most=1)
    if re.search(r"\s", image):
        raise UsageError(f'Invalid image name "{image}": invalid reference format')
    container: Raw = {"name": name, "image": image}
    if options.command_words:
        container["command" if options.command else "args"] = list(options.command_words)
    if options.env:
        container["env"] = [{"name": k, "value": v} for k, v in assignments(options.env, "--env KEY=VALUE").items()]
    if options.port:
        container["ports"] = [{"containerPort": options.port}]
    labels = listed(options.labels, "--labels app=web") or {"run": name}
    spec = {"containers": [container], "restartPolicy": options.restart, "dnsPolicy": "ClusterFirst"}
    made = _manifest("v1", "Pod", name, spec=spec)
    made["metadata"]["labels"] = labels
    if options.annotations:
        made["metadata"]["annotations"] = assignments(options.annotations, "--annotations note=x")
    return made


def exposing_service(name: str, options: argparse.Namespace, raw: Mapping[str, Any]) -> Raw:
    """Return the Service with which `expose` exposes an object's pods.

    Raises UsageError if the object has no selector.
    """
    kind, spec = raw["kind"], raw.get("spec") or {}
    labels = raw["metadata"].get("labels") or {}
    if options.selector:
        selector = listed(options.selector, "--selector app=web")
    elif kind == "Pod":
        selector = dict(labels)
        if not selector:
            raise UsageError("the pod has no labels and cannot be exposed")
    elif kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        if spec["selector"].get("matchExpressions"):
            raise UsageError("couldn't convert expressions of the selector: use --selector app=web")
        selector = spec["selector"]["matchLabels"]
    elif kind in ("Service", "ReplicationController"):
        selector = spec.get("selector") or {}
    else:
        raise UsageError(f"cannot expose a {kind}")
    ports = [int(text) for text in options.port.split(",")] if options.port else _declared_ports(raw)
    if not ports:
        raise UsageError("couldn't find port via --port flag or introspection")
    target: Any = options.target_port
    if isinstance(target, str):
        target = _number_or_text(target)
    entries: list[Raw] = []
    for number, port in enumerate(ports, 1):
        entry: Raw = {"protocol": options.protocol, "port": port, "targetPort": port if target is None else target}
        entries.append(entry if len(ports) == 1 else {"name": f"port-{number}", **entry})
    made = _manifest("v1", "Service", name, spec={"selector": dict(selector), "ports": entries})
    if options.type:
        made["spec"]["type"] = options.type
    made["metadata"]["labels"] = listed(options.labels, "--labels app=web") or dict(labels)
    return made


def _declared_ports(raw: Mapping[str, Any]) -> list[int]:
    spec = raw.get("spec") or {}
    if raw["kind"] == "Service":
        return [int(port["port"]) for port in spec.get("ports") or ()]
    pod_spec = spec if raw["kind"] == "Pod" else (spec.get("template") or {}).get("spec") or {}
    return [int(port["containerPort"]) for one in pod_spec.get("containers") or () for port in one.get("ports") or ()]


GENERATORS: Final[Mapping[str, Callable[[str, argparse.Namespace, Path], Raw]]] = {
    "Namespace": namespace,
    "ServiceAccount": service_account,
    "Deployment": deployment,
    "Job": job,
    "CronJob": cron_job,
    "PriorityClass": priority_class,
    "PodDisruptionBudget": pod_disruption_budget,
    "ResourceQuota": resource_quota,
    "ConfigMap": config_map,
}
