"""create, run and expose: new objects from manifests or from flags."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Final

from kschedd.api.schemas.kinds import kind_of, lookup
from kschedd.api.text.numbers import whole_number
from kschedd.api.text.similar import did_you_mean
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    dry_run_flag,
    given_value,
    namespace_flags,
    namespace_of,
    output_flag,
    output_of,
    validate_flag,
    validation_of,
    verb,
)
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import Target, get_object, targets_of
from kschedd.verbs.objects import generating
from kschedd.verbs.objects.changing import FORMS, dry_run_text, write_change
from kschedd.verbs.objects.manifests import file_flag, no_mapping, read_objects

Raw = dict[str, Any]

_MADE: Final = (*(lookup(kind).singular for kind in (*generating.GENERATORS, "Service")), "secret generic")


def _create_words(words: VerbParser) -> None:
    words.takes_command = True
    words.add_argument("what", nargs="*", metavar="KIND NAME", help="one of " + ", ".join(sorted(_MADE)))
    file_flag(words, needed=False)
    namespace_flags(words)
    dry_run_flag(words)
    validate_flag(words)
    output_flag(words, FORMS)
    several = {"action": "append", "default": []}
    words.add_argument(
        "--image",
        **several,
        metavar="IMAGE",
        help="container image of a deployment, job or cronjob; may be repeated for a deployment",
    )
    words.add_argument("--replicas", type=int, default=1, metavar="N", help="replicas of a deployment")
    words.add_argument("--port", type=int, metavar="N", help="container port of a deployment")
    words.add_argument(
        "--requests", metavar="LIST", help="requests of the pods of a deployment or job, such as cpu=100m,memory=64Mi"
    )
    words.add_argument("--from", dest="origin", metavar="cronjob/NAME", help="template of a job: cronjob/NAME")
    words.add_argument("--schedule", metavar="TEXT", help='schedule of a cronjob, such as "*/5 * * * *"')
    words.add_argument("--restart", choices=("OnFailure", "Never"), help="restart policy of a cronjob's pods")
    words.add_argument("--value", type=int, metavar="N", help="priority of a priority class")
    words.add_argument("--global-default", action="store_true", help="make this class the default priority class")
    words.add_argument("--description", default="", metavar="TEXT", help="description of a priority class")
    words.add_argument(
        "--preemption-policy",
        choices=("PreemptLowerPriority", "Never"),
        default="PreemptLowerPriority",
        help="preemption policy of a priority class",
    )
    words.add_argument("--selector", metavar="LABELS", help="selector of a poddisruptionbudget, such as app=web")
    words.add_argument("--min-available", metavar="N", help="minAvailable of a poddisruptionbudget, such as 1 or 50%%")
    words.add_argument("--max-unavailable", metavar="N", help="maxUnavailable of a poddisruptionbudget")
    words.add_argument("--hard", metavar="LIST", help="limits of a quota, such as pods=2,requests.cpu=1")
    words.add_argument("--scopes", metavar="LIST", help="scopes of a quota")
    words.add_argument("--from-literal", **several, metavar="KEY=VALUE", help="entry of a configmap or secret")
    words.add_argument(
        "--from-file", **several, metavar="[KEY=]FILE", help="file or folder of entries of a configmap or secret"
    )
    words.add_argument(
        "--from-env-file", **several, metavar="FILE", help="file of KEY=VALUE lines for a configmap or secret"
    )
    words.add_argument("--type", metavar="TYPE", help="type of a secret")
    words.add_argument("--tcp", **several, metavar="PORT[:TARGET]", help="port of a service")
    words.add_argument("--node-port", type=int, metavar="N", help="node port of a service")
    words.add_argument("--external-name", metavar="HOST", help="of a service")


@verb(
    "create",
    "Create objects from manifests or from flags.",
    _create_words,
    examples=(
        "create -f pod.yaml",
        "create namespace team-a",
        "create deployment web --image nginx --replicas 3",
        "create job once --image busybox -- sleep 60",
        "create quota small --hard pods=10 --dry-run=client -o yaml",
    ),
)
def create(session: VerbSession, options: argparse.Namespace) -> int:
    if not options.filename:
        return _create_one(session, options, _made(session, options), "created")
    if options.what:
        raise UsageError("give either -f FILE or KIND NAME, not both")
    return each_manifest(session, options, "created", lambda raw: _call(session, options, raw))


def _call(session: VerbSession, options: argparse.Namespace, raw: Raw) -> Any:
    return session.daemon.call(
        "objects.create",
        manifest=raw,
        field_validation=validation_of(options),
        dry_run=options.dry_run != "none",
        namespace=namespace_of(session, options) or "default",
    )


def _create_one(session: VerbSession, options: argparse.Namespace, raw: Raw, done: str) -> int:
    """Create an object from flags; with --dry-run=client, print the object without a daemon."""
    output_of(options.output, FORMS)
    if options.namespace and kind_of(raw).namespaced:
        raw["metadata"]["namespace"] = namespace_of(session, options)
    if options.dry_run == "client":
        from kschedd.api.schemas.codec import encoded_object

        write_change(session, options, encoded_object(raw), f"{done} (dry run)")
        return 0
    answer = _call(session, options, raw)
    for warning in answer.get("warnings") or ():
        session.warn(warning)
    write_change(session, options, answer["object"], f"{done}{dry_run_text(options)}")
    session.warn_unsupported([answer])
    return 0


def _made(session: VerbSession, options: argparse.Namespace) -> Raw:
    """Return the object that KIND NAME and the flags describe. Raises UsageError."""
    words = list(options.what)
    kind = lookup(words[0]).name if words else ""
    sort = words.pop(1) if kind in ("Service", "Secret") and len(words) > 1 else ""
    if kind in ("Service", "Secret") and not sort:
        raise UsageError(f"create {kind.lower()} {'clusterip' if kind == 'Service' else 'generic'} NAME")
    if words and kind not in (*generating.GENERATORS, "Service", "Secret"):
        if words[0] == "token":
            raise UsageError("tokens are created over the REST API: `kubectl create token` (`run --http`)")
        made = {"Pod": "; `run NAME --image IMAGE` creates a pod", "Node": "; `node add NODE --count N` copies a node"}
        hint = made.get(kind) or did_you_mean(words[0], _MADE)
        raise UsageError(f"{words[0]} cannot be created from flags; use create -f FILE{hint}")
    if len(words) != 2:
        got = f": exactly one NAME is required, got {len(words) - 1}" if words else ""
        raise UsageError(f"-f FILE or KIND NAME is required, such as: create namespace team-a{got}")
    name = words[1]
    if kind == "Service":
        return generating.service(sort, name, options)
    if kind == "Secret":
        if sort != "generic":
            raise UsageError(f"secrets of the sort {sort} are not made from words: create secret generic, or -f FILE")
        return generating.secret(name, options, session.folder)
    if kind == "Job" and options.origin:
        (origin,) = targets_of(session, [options.origin])
        if origin.kind.name != "CronJob" or options.image or options.command_words:
            raise UsageError("--from takes cronjob/NAME and excludes --image and a command")
        return generating.job_of_cron_job(
            name, get_object(session, origin.kind, origin.name, _namespace(session, options))
        )
    return generating.GENERATORS[kind](name, options, session.folder)


def _namespace(session: VerbSession, options: argparse.Namespace) -> str:
    return namespace_of(session, options) or "default"


# -- run ------------------------------------------------------------------------------------------------------------


def _run_words(words: VerbParser) -> None:
    words.takes_command = True
    words.add_argument("name", metavar="NAME")
    words.add_argument("--image", action="append", default=[], metavar="IMAGE", help="image of the container")
    words.add_argument("--labels", "-l", metavar="LIST", help="labels of the pod, such as app=web,tier=db (run=NAME)")
    words.add_argument(
        "--annotations", action="append", default=[], metavar="KEY=VALUE", help="annotation; may be repeated"
    )
    words.add_argument(
        "--env", action="append", default=[], metavar="KEY=VALUE", help="environment variable; may be repeated"
    )
    words.add_argument("--port", type=int, metavar="N", help="port of the container")
    words.add_argument("--expose", action="store_true", help="also create a Service for the pod (requires --port)")
    words.add_argument("--restart", choices=("Always", "OnFailure", "Never"), default="Always", help="restart policy")
    words.add_argument("--command", action="store_true", help="use the words after -- as the command, not as arguments")
    words.add_argument(
        "--overrides", metavar="JSON", help="fields to merge into the pod, such as {spec: {nodeName: node-a}}"
    )
    namespace_flags(words)
    dry_run_flag(words)
    validate_flag(words)
    output_flag(words, FORMS)


@verb(
    "run",
    "Create a pod from an image.",
    _run_words,
    examples=("run web --image nginx --labels app=web", "run web --image nginx --dry-run=client -o yaml"),
)
def run(session: VerbSession, options: argparse.Namespace) -> int:
    raw = generating.pod(options.name, options)
    if options.overrides:
        given = given_value("--overrides", options.overrides)
        if not isinstance(given, Mapping):
            raise UsageError("--overrides: expected a map of fields, such as {spec: {nodeName: node-a}}")
        raw = _merged(raw, given)
    if options.expose:
        if not options.port:
            raise UsageError("--port must be set when exposing a service")
        spec = {"selector": raw["metadata"]["labels"], "ports": [{"port": options.port, "protocol": "TCP"}]}
        spec["ports"][0]["targetPort"] = options.port
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": options.name}, "spec": spec}
        _create_one(session, options, service, "created")
    return _create_one(session, options, raw, "created")


def _merged(old: Mapping[str, Any], patch: Mapping[str, Any]) -> Raw:
    """Return the object with a JSON merge patch (RFC 7386) applied."""
    merged = {name: value for name, value in old.items() if not (name in patch and patch[name] is None)}
    for name, value in patch.items():
        if isinstance(value, Mapping):
            before = merged.get(name)
            merged[name] = _merged(before if isinstance(before, Mapping) else {}, value)
        elif value is not None:
            merged[name] = value
    return merged


# -- expose ---------------------------------------------------------------------------------------------------------


def _expose_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="KIND NAME | KIND/NAME")
    words.add_argument("--port", metavar="PORTS", help="ports of the service; default: the ports of the containers")
    words.add_argument(
        "--target-port",
        metavar="PORT",
        help="ports of the containers, by number or name; default: the ports of the service",
    )
    words.add_argument("--name", metavar="NAME", help="default: the name of the object")
    words.add_argument("--protocol", choices=("TCP", "UDP", "SCTP"), default="TCP", help="of the ports")
    words.add_argument("--type", choices=("ClusterIP", "NodePort", "LoadBalancer"), help="of the service")
    words.add_argument("--selector", metavar="LABELS", help="default: the selector of the object")
    words.add_argument("--labels", "-l", metavar="LABELS", help="default: the labels of the object")
    namespace_flags(words)
    dry_run_flag(words)
    validate_flag(words)
    output_flag(words, FORMS)


@verb(
    "expose",
    "Create a Service for the pods of a workload, Service or pod.",
    _expose_words,
    examples=("expose deployment web --port 80 --target-port 8080",),
    completes="kinds",
)
def expose(session: VerbSession, options: argparse.Namespace) -> int:
    targets: list[Target] = targets_of(session, options.what, needs_name=True)
    if options.port and not all(whole_number(port) is not None for port in options.port.split(",")):
        raise UsageError(f'--port "{options.port}": expected numbers, such as 80 or 80,443')
    if options.name and len(targets) > 1:
        raise UsageError("--name cannot be used with several objects")
    for target in targets:
        raw = get_object(session, target.kind, target.name, _namespace(session, options))
        _create_one(session, options, generating.exposing_service(options.name or target.name, options, raw), "exposed")
    return 0


def each_manifest(
    session: VerbSession, options: argparse.Namespace, done: str, request: Callable[[dict[str, Any]], Any]
) -> int:
    """Call `request` for each object and print the result. An error in one object does not affect the others.

    `done` is the word to print for success. Returns exit status 1 if any object was rejected.
    """
    objects, failed = read_objects(session, options.filename, namespace_of(session, options) or "default")
    answers = []
    for place, raw in objects:
        try:
            answer = request(raw)
        except RpcError as error:
            why = str(error)
            if error.code == "no_match":
                meta = raw.get("metadata") or {}
                why = no_mapping(place.rpartition(":")[0], meta.get("name"), meta.get("namespace"), why)
            session.error(f"{place}: {why}")
            failed += 1
            continue
        answers.append(answer)
        for warning in answer.get("warnings") or ():
            session.warn(f"{place}: {warning}")
        write_change(session, options, answer["object"], f"{done}{dry_run_text(options)}")
    session.warn_unsupported(answers)
    return 1 if failed else 0
