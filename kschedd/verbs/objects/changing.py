"""Verbs that change objects: delete, patch, scale, label, annotate. Each prints its changes."""

import argparse
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kschedd.api.schemas.kinds import Kind, kind_of, lookup
from kschedd.printing import documents
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    dry_run_flag,
    given_value,
    may_go_on,
    namespace_flags,
    namespace_of,
    output_flag,
    output_of,
    validate_flag,
    validation_of,
    verb,
    yes_flag,
)
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import get_object, selected, targets_of, where, with_near_name
from kschedd.verbs.objects.generating import assignments
from kschedd.verbs.objects.manifests import file_flag, read_objects
from kschedd.verbs.objects.waiting import Patience, seconds_to_wait, timed_out, wait_until

FORMS = ("table", "name", "yaml", "json")
_CASCADES = ("background", "foreground", "orphan")


def write_change(session: VerbSession, options: argparse.Namespace, raw: Mapping[str, Any], result: str) -> None:
    """Print the result of a change: one line (`pod/web labeled`), or with -o the changed object."""
    output = output_of(options.output, FORMS)
    if output.form == "yaml":
        session.write(documents.as_yaml(dict(raw)))
    elif output.form == "json":
        session.write(documents.as_json(dict(raw)))
    else:
        name = documents.name(raw)
        session.write(f"{name}\n" if output.form == "name" else f"{name} {result}\n")


def _changed(answer: Mapping[str, Any]) -> str:
    """Return the names of the changed fields, or ""."""
    return ", ".join(answer["changed"])


def dry_run_text(options: argparse.Namespace) -> str:
    """Return the suffix that kubectl prints for a dry run."""
    return {"none": "", "client": " (dry run)", "server": " (server dry run)"}[str(options.dry_run)]


# -- delete ---------------------------------------------------------------------------------------------------------


def _delete_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="KIND NAME... | KIND/NAME")
    file_flag(words, needed=False)
    namespace_flags(words, everywhere=True)
    words.add_argument("-l", "--selector", metavar="LABELS", help="objects with these labels")
    words.add_argument(
        "--field-selector", metavar="FIELDS", help="objects with these fields, such as status.phase=Succeeded"
    )
    words.add_argument("--all", action="store_true", help="all objects of the kind")
    words.add_argument(
        "--grace-period",
        type=int,
        metavar="SECONDS",
        help="seconds for pods to terminate (negative: the value in their spec)",
    )
    words.add_argument("--now", action="store_true", help="set the grace period to 1 second")
    words.add_argument("--force", action="store_true", help="delete immediately, without graceful termination")
    words.add_argument(
        "--cascade",
        choices=_CASCADES,
        default="background",
        help="delete dependents after the owner (background), before it (foreground), or keep them (orphan)",
    )
    words.add_argument("--ignore-not-found", action="store_true", help="ignore objects that do not exist")
    words.add_argument(
        "--wait",
        choices=("true", "false"),
        help="wait until the objects no longer exist (true; in virtual time: false)",
    )
    words.implied["--wait"] = "true"
    words.add_argument(
        "--timeout", default="0s", metavar="TIME", help="time limit of --wait, such as 30s; 0s: no limit"
    )
    dry_run_flag(words)
    yes_flag(words)
    output_flag(words, ("table", "name"))


_Deletion = tuple[Kind, str, dict[str, Any]]  # the name ("" for several objects), and the parameters of the call


@verb(
    "delete",
    "Delete objects by name, label or manifest.",
    _delete_words,
    examples=("delete pod web-0", "delete deployment/web", "delete pods -l app=web", "delete -f cluster.yaml"),
    completes="kinds",
)
def delete(session: VerbSession, options: argparse.Namespace) -> int:
    output = output_of(options.output, ("table", "name"))
    grace = _grace_period(session, options)
    flags: dict[str, Any] = {"dry_run": options.dry_run != "none", "propagation": options.cascade.capitalize()}
    if grace is not None and grace >= 0:
        flags["grace_period_s"] = grace
    namespace = namespace_of(session, options)
    if options.filename:
        calls, failed = _deletions_of_files(session, options, namespace)
    else:
        calls, failed = list(_deletions_of_targets(session, options, namespace)), 0
    question = _question(calls, namespace)
    if question and not may_go_on(session, options, question):
        return 1
    count = 0
    limit = seconds_to_wait(options.timeout, zero=seconds_to_wait("-1s"))
    going: list[tuple[Kind, Mapping[str, Any]]] = []
    for kind, name, params in calls:
        try:
            answer = session.daemon.call("objects.delete", kind=kind.name, **params, **flags)
        except RpcError as error:
            if error.code == "not_found" and options.ignore_not_found:
                continue
            session.error(str(with_near_name(session, error, kind, name, namespace) if name else error))
            failed += 1
            continue
        for gone in answer["deleted"]:
            count += 1
            session.write(_gone(gone, output.form, dry_run=flags["dry_run"], forced=options.force and grace == 0))
            if not gone.get("gone", True) and not flags["dry_run"]:
                going.append((kind, gone))
    if going and _waits(session, options):
        patience = Patience(session, limit)
        failed += sum(not _waited_for(session, kind, gone, patience) for kind, gone in going)
    if not count and not failed and not options.ignore_not_found:
        session.write_error("No resources found.\n")
    return 1 if failed else 0


def _grace_period(session: VerbSession, options: argparse.Namespace) -> int | None:
    """Return the grace period in seconds; None: that of each pod. Raises UsageError."""
    given = options.grace_period
    if options.now:
        if given is not None and given >= 0:
            raise UsageError("--now and --grace-period cannot be specified together", "delete")
        return 1
    if options.force:
        if given:
            session.warn("--force is ignored because --grace-period is not 0.")
        elif options.dry_run == "none":
            session.warn(
                "Immediate deletion does not wait for confirmation that the running resource has been terminated. "
                "The resource may continue to run on the cluster indefinitely."
            )
        return given or 0
    if given == 0 and options.wait == "false":
        why = "--grace-period=0 must have either --force specified, or --wait to be set to true"
        raise UsageError(why, "delete")
    return 1 if given == 0 and session.streams else given  # a copy of the cluster has nothing to protect


def _waits(session: VerbSession, options: argparse.Namespace) -> bool:
    """Return whether to wait for terminating objects, and print a hint if their time does not pass by itself."""
    if options.wait is not None:
        return bool(options.wait == "true")
    if not session.streams:
        return False
    if not session.daemon.call("time.get")["virtual"]:
        return True
    session.hint(f"Terminating objects go when virtual time advances, such as `{session.own_program}advance 30s`.")
    return False


def _deletions_of_files(
    session: VerbSession, options: argparse.Namespace, namespace: str | None
) -> tuple[list[_Deletion], int]:
    """Return the objects that the manifests name, and the number of unreadable manifests."""
    if options.what or options.selector or options.field_selector or options.all:
        raise UsageError("-f/--filename cannot be combined with kinds, selectors or --all")
    objects, failed = read_objects(session, options.filename, namespace or "default")
    calls: list[_Deletion] = []
    # Delete in reverse order, because namespaces and other dependencies are usually first in a file.
    for _, raw in reversed(objects):
        kind, name = kind_of(raw), str((raw.get("metadata") or {}).get("name", ""))
        calls.append((kind, name, {"name": name, **where(kind, raw["metadata"].get("namespace"))}))
    return calls, failed


def _deletions_of_targets(
    session: VerbSession, options: argparse.Namespace, namespace: str | None
) -> Iterator[_Deletion]:
    selectors = {"label_selector": options.selector, "field_selector": options.field_selector}
    given = {name: text for name, text in selectors.items() if text}
    for target in targets_of(session, options.what):
        if target.name:
            if given or options.all:
                raise UsageError("names exclude -l, --field-selector and --all")
            yield target.kind, target.name, {"name": target.name, **where(target.kind, namespace)}
        elif given or options.all:
            which: dict[str, Any] = given or {"all": True}
            yield target.kind, "", {**which, **where(target.kind, namespace)}
        else:
            raise UsageError(f"{target.kind.plural}: names, -l LABELS, --field-selector FIELDS or --all are required")


def _waited_for(session: VerbSession, kind: Kind, gone: Mapping[str, Any], patience: Patience) -> bool:
    name, namespace = str(gone["name"]), gone.get("namespace") or None
    if wait_until(session, kind, name, namespace, lambda raw: raw is None, patience, uid=str(gone.get("uid") or "")):
        return True
    session.error(timed_out(kind, name))
    return False


_WITH_MUCH_IN_IT = ("Node", "Namespace", "CustomResourceDefinition")


def _question(calls: list[tuple[Kind, str, dict[str, Any]]], namespace: str | None) -> str:
    """Return the confirmation question, or "" if no confirmation is needed.

    A confirmation is needed for several objects, and for an object with dependents.
    """
    parts = []
    for kind, name, params in calls:
        within = f" in {f'namespace {namespace}' if namespace else 'every namespace'}" if kind.namespaced else ""
        if params.get("all"):
            parts.append(f"all {kind.plural}{within}")
        elif not name:
            labels, fields = params.get("label_selector"), params.get("field_selector")
            chosen = [f"labels {labels}"] * bool(labels) + [f"fields {fields}"] * bool(fields)
            parts.append(f"all {kind.plural} with {' and '.join(chosen)}{within}")
        elif kind.name in _WITH_MUCH_IN_IT:
            parts.append(
                f"{kind.singular} {name} and the pods on it" if kind.name == "Node" else f"{kind.singular} {name}"
            )
    return f"Delete {', '.join(parts)}?" if parts else ""


def _gone(gone: Mapping[str, Any], form: str, *, dry_run: bool, forced: bool) -> str:
    kind = lookup(str(gone["kind"]))
    if form == "name":
        return f"{kind.resource}/{gone['name']}\n"
    place = f" from {gone['namespace']} namespace" if gone.get("namespace") else ""
    tail = " (dry run)" if dry_run else ""
    return f'{kind.resource} "{gone["name"]}" {"force deleted" if forced else "deleted"}{place}{tail}\n'


# -- patch, scale ---------------------------------------------------------------------------------------------------


def _patch_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="KIND NAME | KIND/NAME")
    words.add_argument("-p", "--patch", metavar="PATCH", help="the patch in JSON or YAML; null removes a field")
    words.add_argument(
        "--patch-file", type=path_text, metavar="FILE", help="a file with the patch, or - for standard input"
    )
    words.add_argument(
        "--type",
        choices=("strategic", "merge", "json"),
        default="strategic",
        help="strategic: merge lists by key; merge: replace lists; json: a list of operations",
    )
    words.add_argument("--subresource", choices=("status", "resize"), help="patch this subresource")
    namespace_flags(words)
    dry_run_flag(words)
    validate_flag(words)
    output_flag(words, FORMS)


@verb(
    "patch",
    "Change fields of an object.",
    _patch_words,
    examples=(
        'patch deployment web -p \'{"spec": {"replicas": 3}}\'',
        'patch node n1 --type json -p \'[{"op": "remove", "path": "/spec/taints"}]\'',
    ),
    completes="kinds",
)
def patch(session: VerbSession, options: argparse.Namespace) -> int:
    change = _patch_given(session, options)
    flags: dict[str, Any] = {
        "patch": change,
        "type": options.type,
        "field_validation": validation_of(options),
        "dry_run": options.dry_run != "none",
    }
    if options.subresource:
        flags["subresource"] = options.subresource
    failed = 0
    answers = []
    targets = targets_of(session, options.what, needs_name=True)
    for kind, name, namespace in selected(session, targets, options):
        params = {"kind": kind.name, "name": name, **flags, **where(kind, namespace)}
        answer = _call(session, "objects.patch", params, kind, name, namespace)
        if answer is None:
            failed += 1
            continue
        answers.append(answer)
        for warning in answer.get("warnings") or ():
            session.warn(warning)
        paths = _changed(answer)
        result = f"patched: {paths}" if paths else "patched (no change)"
        write_change(session, options, answer["object"], f"{result}{dry_run_text(options)}")
    session.warn_unsupported(answers)
    return 1 if failed else 0


def _patch_given(session: VerbSession, options: argparse.Namespace) -> Any:
    """Return the patch of -p or --patch-file. Raises UsageError."""
    if (options.patch is None) == (options.patch_file is None):
        raise UsageError("""a patch is required: -p '{"spec": {"replicas": 3}}' or --patch-file FILE""")
    text = options.patch
    if text is None:
        try:
            file = options.patch_file
            text = (session.read_input() if file == "-" else (session.folder / file).read_bytes()).decode()
        except (OSError, UnicodeDecodeError) as wrong:
            raise UsageError(f"{options.patch_file}: cannot be read: {wrong}") from wrong
    change = given_value("the patch", text)
    if options.type == "json":
        if not isinstance(change, list):
            raise UsageError(
                """a patch of type json must be a list of operations, such as [{op: remove, path: /spec/x}]"""
            )
    elif not isinstance(change, dict):
        raise UsageError("a patch must be a map of fields, such as {spec: {replicas: 3}}")
    return change


def _call(
    session: VerbSession, method: str, params: dict[str, Any], kind: Kind, name: str, namespace: str | None
) -> dict[str, Any] | None:
    """Return the result of the call. If the call failed, write the error to standard error and return None."""
    try:
        answer: dict[str, Any] = session.daemon.call(method, **params)
        return answer
    except RpcError as error:
        session.error(_request_error(str(with_near_name(session, error, kind, name, namespace))))
        return None


def _request_error(text: str) -> str:
    """Return kubectl's message for an invalid request, without the text of the object."""
    if not text.startswith(' "" is invalid: '):
        return text
    bare = text.removeprefix(' "" is invalid: ')
    return "The request is invalid: " + re.sub(r'Invalid value: "(?:[^"\\]|\\.){200,}": ', "", bare)


def _scale_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="KIND NAME... | KIND/NAME")
    words.add_argument("--replicas", type=int, required=True, metavar="N")
    words.add_argument("--current-replicas", type=int, metavar="N", help="precondition: the current number of replicas")
    words.add_argument("-l", "--selector", metavar="LABELS", help="objects with these labels")
    words.add_argument("--all", action="store_true", help="all objects of the kind")
    namespace_flags(words)
    output_flag(words, FORMS)


@verb(
    "scale",
    "Set the number of replicas of a workload.",
    _scale_words,
    examples=("scale deployment web --replicas 5",),
    completes="kinds",
)
def scale(session: VerbSession, options: argparse.Namespace) -> int:
    if options.replicas < 0:
        raise UsageError(f"--replicas {options.replicas}: must be 0 or more")
    failed = 0
    for kind, name, namespace in selected(session, targets_of(session, options.what), options):
        params = {"kind": kind.name, "name": name, "replicas": options.replicas, **where(kind, namespace)}
        if options.current_replicas is not None:
            params["current"] = options.current_replicas
        answer = _call(session, "objects.scale", params, kind, name, namespace)
        if answer is None:
            failed += 1
            continue
        result = f"scaled: {answer.get('before')} -> {answer.get('after')}"
        write_change(session, options, answer["object"], result)
    return 1 if failed else 0


# -- label, annotate ------------------------------------------------------------------------------------------------


def _label_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="+", metavar="KIND NAME KEY=VALUE KEY-", help="KEY- removes a key")
    words.add_argument("--overwrite", action="store_true", help="overwrite keys that have another value")
    words.add_argument("--list", action="store_true", help="print the result")
    words.add_argument("-l", "--selector", metavar="LABELS", help="objects with these labels")
    words.add_argument("--all", action="store_true", help="all objects of the kind")
    namespace_flags(words)
    output_flag(words, FORMS)


@verb(
    "label",
    "Set or remove labels.",
    _label_words,
    examples=("label node node-a disk=ssd", "label pods --all tier-"),
    completes="kinds",
)
def _label(session: VerbSession, options: argparse.Namespace) -> int:
    return _mark(session, options, "objects.label", "labeled")


@verb(
    "annotate",
    "Set or remove annotations.",
    _label_words,
    examples=("annotate node node-a owner=team-a", "annotate pods --all owner-"),
    completes="kinds",
)
def _annotate(session: VerbSession, options: argparse.Namespace) -> int:
    return _mark(session, options, "objects.annotate", "annotated")


def _mark(session: VerbSession, options: argparse.Namespace, method: str, done: str) -> int:
    changes = [word for place, word in enumerate(options.what) if place and _is_change(word)]
    rest = [word for place, word in enumerate(options.what) if not place or not _is_change(word)]
    if not changes and not options.list:
        raise UsageError("KEY=VALUE, KEY- or --list is required")
    setting = assignments([word for word in changes if "=" in word], "tier=web")
    removing = [word[:-1] for word in changes if "=" not in word]
    failed = 0
    answers = []
    chosen = selected(session, targets_of(session, rest), options)
    for kind, name, namespace in chosen:
        if not changes:
            raw = get_object(session, kind, name, namespace)
            _write_marks(session, kind, raw, method, alone=len(chosen) == 1)
            continue
        params: dict[str, Any] = {"kind": kind.name, "name": name, "set": setting, "remove": removing}
        params |= {"overwrite": options.overwrite, **where(kind, namespace)}
        answer = _call(session, method, params, kind, name, namespace)
        if answer is None:
            failed += 1
            continue
        answers.append(answer)
        changed = _changed(answer)
        write_change(session, options, answer["object"], f"{done}: {changed}" if changed else f"not {done}: no change")
        if options.list:
            _write_marks(session, kind, answer["object"], method, alone=len(chosen) == 1)
    session.warn_unsupported(answers)
    return 1 if failed else 0


def _write_marks(session: VerbSession, kind: Kind, raw: Mapping[str, Any], method: str, *, alone: bool) -> None:
    """Print the labels or annotations of an object, as `kubectl label --list` does."""
    field = "labels" if method == "objects.label" else "annotations"
    if not alone:
        session.write(f"Listing {field} for {kind.name}.{kind.group}/{raw['metadata']['name']}:\n")
    for key, value in sorted((raw["metadata"].get(field) or {}).items()):
        session.write(f"{'' if alone else ' '}{key}={value}\n")


def _is_change(word: str) -> bool:
    return "=" in word or (word.endswith("-") and len(word) > 1)
