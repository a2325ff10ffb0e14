"""set: changes images, resources and environment of a workload's containers, and settings of the configuration.

`set image|resources|env|serviceaccount` change objects, as in kubectl. `set weight|plugin|…` change the configuration
of the scheduler (`kschedd.verbs.scheduler.config`). No word means both.
"""

import argparse
import fnmatch
from collections.abc import Callable, Mapping
from typing import Any, Final

from kschedd.api.quantity import QuantityError, milli_value
from kschedd.api.schemas.kinds import POD_TEMPLATES
from kschedd.api.text.similar import did_you_mean
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    dry_run_flag,
    namespace_flags,
    output_flag,
    verb,
)
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import get_object, selected, targets_of, where
from kschedd.verbs.objects.changing import FORMS, dry_run_text, write_change
from kschedd.verbs.objects.generating import assignments, listed
from kschedd.verbs.scheduler import config

Raw = dict[str, Any]

OBJECT_SETS: Final = {
    "image": "image KIND/NAME CONTAINER=IMAGE",
    "resources": "resources KIND/NAME --requests cpu=100m --limits cpu=1",
    "env": "env KIND/NAME KEY=VALUE KEY-",
    "serviceaccount": "serviceaccount KIND NAME ACCOUNT",
}


def _words(words: VerbParser) -> None:
    what = "; ".join((*config.SETS.values(), *OBJECT_SETS.values()))
    words.add_argument("what", nargs="*", metavar="WHAT", help=what)
    config.set_flags(words)
    words.add_argument(
        "-c", "--containers", metavar="NAMES", help="resources, env: names of the containers; * is a wildcard"
    )
    words.add_argument("--requests", metavar="LIST", help="resources: cpu=100m,memory=64Mi")
    words.add_argument("--limits", metavar="LIST", help="resources: cpu=1,memory=256Mi")
    words.add_argument("--list", action="store_true", help="env: print the variables and change nothing")
    words.add_argument("-l", "--selector", metavar="LABELS", help="objects with these labels")
    words.add_argument("--all", action="store_true", help="all objects of the kind")
    namespace_flags(words)
    dry_run_flag(words)
    output_flag(words, FORMS)


@verb(
    "set",
    "Change the scheduler's configuration at run time; or image, resources and env of a workload.",
    _words,
    examples=(
        "set weight ImageLocality 5",
        "set plugin NodeAffinity off --at score",
        "set args InterPodAffinity '{\"hardPodAffinityWeight\": 5}'",
        "set backoff 1s 30s",
        "set image deployment/web app=nginx:2",
        "set resources deployment web --requests cpu=200m --limits cpu=1",
        "set env deployment/web DEBUG=1 OLD-",
    ),
    completes="set",
)
def set_(session: VerbSession, options: argparse.Namespace) -> int:
    what = options.what[0] if options.what else ""
    if what not in OBJECT_SETS:
        if what not in config.SETS:
            known = {**config.SETS, **OBJECT_SETS}
            if what and (hint := did_you_mean(what, known)):
                raise UsageError(f'set: unknown setting "{what}"{hint}', "set")
            raise UsageError(f"a setting is required, one of: {'; '.join(known.values())}", "set")
        for flag in ("containers", "requests", "limits", "list", "selector", "all", "namespace"):
            if getattr(options, flag):
                raise UsageError(f"--{flag} is for: set {', set '.join(OBJECT_SETS)}", "set")
        if options.dry_run != "none" or options.output != "table":
            raise UsageError("--dry-run and -o do not apply to settings of the configuration", "set")
        return config.set_(session, options)
    if options.profile or options.at:
        raise UsageError("--profile and --at apply only to the configuration", "set")
    return _SETS[what](session, options, options.what[1:])


def _set_image(session: VerbSession, options: argparse.Namespace, words: list[str]) -> int:
    images = assignments([word for word in words if "=" in word], "set image deployment/web app=nginx:2")
    if not images:
        raise UsageError(f"set {OBJECT_SETS['image']}: which image? CONTAINER=IMAGE, or *=IMAGE for all", "set")

    def changes(pod: Raw, kind: str) -> Raw:
        change: Raw = {}
        unknown = dict(images)
        for sort in ("initContainers", "containers"):
            for container in pod.get(sort) or ():
                image = images.get(container["name"], images.get("*"))
                unknown.pop(container["name"] if container["name"] in images else "*", None)
                if image is not None and container.get("image") != image:
                    change.setdefault(sort, []).append({"name": container["name"], "image": image})
        if unknown:
            raise UsageError(f'unable to find container named "{next(iter(unknown))}"')
        return change

    return _change(session, options, [word for word in words if "=" not in word], changes, "image updated")


def _set_resources(session: VerbSession, options: argparse.Namespace, words: list[str]) -> int:
    wanted = {"limits": listed(options.limits, "cpu=1"), "requests": listed(options.requests, "cpu=100m")}
    wanted = {part: amounts for part, amounts in wanted.items() if amounts}
    if not wanted:
        raise UsageError("you must specify an update to requests or limits (in the form of --requests/--limits)", "set")
    for amounts in wanted.values():
        for name, amount in amounts.items():
            try:
                milli_value(amount)
            except QuantityError as fault:
                raise UsageError(f"{name}={amount}: {fault}") from fault

    def changes(pod: Raw, kind: str) -> Raw:
        found = []
        for container in _containers(pod, options):
            present = container.get("resources") or {}
            if any(
                (present.get(part) or {}).get(key) != value for part in wanted for key, value in wanted[part].items()
            ):
                found.append({"name": container["name"], "resources": wanted})
        return {"containers": found} if found else {}

    return _change(session, options, words, changes, "resource requirements updated")


def _set_env(session: VerbSession, options: argparse.Namespace, words: list[str]) -> int:
    setting = assignments([word for word in words if "=" in word], "set env deployment/web KEY=VALUE")
    removing = [word[:-1] for word in words[1:] if word.endswith("-") and "=" not in word]
    objects = [word for number, word in enumerate(words) if "=" not in word and not (number and word.endswith("-"))]
    if not setting and not removing and not options.list:
        raise UsageError("at least one environment variable must be provided: KEY=VALUE, KEY-; or --list", "set")
    if options.list:
        for kind, name, namespace in selected(session, targets_of(session, objects), options):
            raw = get_object(session, kind, name, namespace)
            for container in _containers(_pod_spec(raw, kind.name), options):
                session.write(f"# {kind.name} {name}, container {container['name']}\n")
                for entry in container.get("env") or ():
                    session.write(_env_line(entry))
        return 0

    def changes(pod: Raw, kind: str) -> Raw:
        found = []
        for container in _containers(pod, options):
            present = {entry["name"]: entry.get("value") for entry in container.get("env") or ()}
            env: list[Raw] = []
            for key, value in setting.items():
                if present.get(key) != value or key not in present:
                    env.append({"name": key, "value": value, "valueFrom": None})
            env += [{"name": key, "$patch": "delete"} for key in removing if key in present]
            if env:
                found.append({"name": container["name"], "env": env})
        return {"containers": found} if found else {}

    return _change(session, options, objects, changes, "env updated")


def _env_line(entry: Raw) -> str:
    origin = entry.get("valueFrom")
    if not origin:
        return f"{entry['name']}={entry.get('value', '')}\n"
    sort, source = next(iter(origin.items()))
    where_from = source.get("name") or source.get("fieldPath") or source.get("resource")
    return f"# {entry['name']} from {sort.removesuffix('Ref')} {where_from}, key {source.get('key', '')}\n"


def _set_service_account(session: VerbSession, options: argparse.Namespace, words: list[str]) -> int:
    if len(words) < 2:
        raise UsageError(f"set {OBJECT_SETS['serviceaccount']}", "set")
    *objects, account = words

    def changes(pod: Raw, kind: str) -> Raw:
        # `serviceAccount` is the older name of the field. The API server sets both fields to the same value.
        names = {"serviceAccountName": account, "serviceAccount": account}
        return {} if pod.get("serviceAccountName") == account else names

    return _change(session, options, objects, changes, "serviceaccount updated")


_SETS: Final[Mapping[str, Callable[[VerbSession, argparse.Namespace, list[str]], int]]] = {
    "image": _set_image,
    "resources": _set_resources,
    "env": _set_env,
    "serviceaccount": _set_service_account,
}


def _containers(pod: Raw, options: argparse.Namespace) -> list[Raw]:
    """Return the containers that --containers selects, or all containers without this flag.

    Raises UsageError if no container matches.
    """
    every: list[Raw] = pod.get("containers") or []
    patterns = (options.containers or "*").split(",")
    found = [one for one in every if any(fnmatch.fnmatchcase(one["name"], pattern) for pattern in patterns)]
    if not found:
        raise UsageError(f'unable to find container named "{options.containers}"')
    return found


def _path(kind: str) -> tuple[str, ...]:
    """Return the path of the pod's spec in an object of the kind. Raises UsageError."""
    if kind == "Pod":
        return ("spec",)
    if kind not in POD_TEMPLATES:
        raise UsageError(f"a {kind} has no containers; {', '.join(('Pod', *POD_TEMPLATES))} have")
    return (*POD_TEMPLATES[kind], "spec")


def _pod_spec(raw: Mapping[str, Any], kind: str) -> Raw:
    found: Any = raw
    for field in _path(kind):
        found = found.get(field) or {}
    spec: Raw = found
    return spec


def _change(
    session: VerbSession,
    options: argparse.Namespace,
    words: list[str],
    changes: Callable[[Raw, str], Raw],
    done: str,
) -> int:
    """Patch the pod spec of every selected object. As with kubectl, unchanged objects are not reported."""
    failed = 0
    answers = []
    for kind, name, namespace in selected(session, targets_of(session, words), options):
        change = changes(_pod_spec(get_object(session, kind, name, namespace), kind.name), kind.name)
        if not change:
            continue
        for field in reversed(_path(kind.name)):
            change = {field: change}
        try:
            answer = session.daemon.call(
                "objects.patch",
                kind=kind.name,
                name=name,
                patch=change,
                dry_run=options.dry_run != "none",
                **where(kind, namespace),
            )
        except RpcError as error:
            session.error(str(error))
            failed += 1
            continue
        answers.append(answer)
        for warning in answer.get("warnings") or ():
            session.warn(warning)
        write_change(session, options, answer["object"], f"{done}{dry_run_text(options)}")
    session.warn_unsupported(answers)
    return 1 if failed else 0
