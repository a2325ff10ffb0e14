"""rollout: status, history, undo, restart, pause and resume of Deployments, DaemonSets and StatefulSets, as in kubectl.

Source of messages and rules: kubectl v1.34, pkg/cmd/rollout and pkg/polymorphichelpers (rollback.go,
objectrestarter.go).
"""

import argparse
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kschedd.api.schemas.kinds import Kind, kind_of
from kschedd.api.text.durations import DurationError, parse_duration
from kschedd.api.text.numbers import whole_number
from kschedd.api.text.similar import allowed_names
from kschedd.api.text.times import stamp
from kschedd.printing import documents
from kschedd.printing.describing.rollouts import CHANGE_CAUSE, REVISION, RolloutError, revisions_table, rollout_progress
from kschedd.printing.describing.rollouts import template_text as described
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    dry_run_flag,
    namespace_flags,
    namespace_of,
    output_flag,
    output_of,
    verb,
)
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import get_object, selected, targets_of, where
from kschedd.verbs.objects.manifests import file_flag, read_objects
from kschedd.verbs.objects.waiting import POLL_INTERVAL_S

Raw = dict[str, Any]

ROLLED_OUT: Final = ("Deployment", "DaemonSet", "StatefulSet")
ACTIONS: Final[Mapping[str, str]] = {
    "status": "how far the rollout is; waits until it is done",
    "history": "the revisions, or one of them",
    "undo": "go back to the revision before, or to another",
    "restart": "replace all pods one after the other",
    "pause": "changes of the template wait",
    "resume": "they are rolled out again",
}
_RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
_TEMPLATE_HASH: Final = "pod-template-hash"
_FORMS: Final = ("table", "name", "yaml", "json")
#: annotations that a rollback of a Deployment does not change
_KEPT: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    "deprecated.deployment.rollback.to",
)
#: flag -> actions that accept it; other flags apply to all actions
_FLAGS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "watch": ("status",),
    "timeout": ("status",),
    "revision": ("status", "history"),
    "to_revision": ("undo",),
}


def _words(words: VerbParser) -> None:
    actions = "|".join(ACTIONS)
    words.add_argument(
        "what", nargs="*", metavar="COMMAND KIND NAME", help=f"{actions}, then KIND NAME... or KIND/NAME"
    )
    words.add_argument(
        "-w", "--watch", choices=("true", "false"), help="status: wait until the rollout is complete (true)"
    )
    words.add_argument("--timeout", metavar="TIME", help="status: time limit, such as 90s or 5m; 0s: no limit")
    words.add_argument("--revision", type=int, metavar="N", help="status, history: this revision")
    words.add_argument(
        "--to-revision", type=int, metavar="N", help="undo: the revision to return to; 0: the previous one"
    )
    words.add_argument("-l", "--selector", metavar="LABELS", help="objects with these labels")
    file_flag(words, needed=False)
    namespace_flags(words)
    dry_run_flag(words)
    output_flag(words, _FORMS)
    words.implied["--watch"] = words.implied["-w"] = "true"


@verb(
    "rollout",
    "Show, undo, restart, pause and resume rollouts of Deployments, DaemonSets and StatefulSets.",
    _words,
    examples=(
        "rollout status deployment/web",
        "rollout history daemonset agent --revision 2",
        "rollout undo deployment/web --to-revision 3",
        "rollout restart deployment web",
        "rollout pause deployment/web",
    ),
    completes="rollout",
)
def rollout(session: VerbSession, options: argparse.Namespace) -> int:
    action, *what = options.what or [""]
    if action not in ACTIONS:
        if not action:
            raise UsageError(f"an action is required: {', '.join(ACTIONS)}", "rollout")
        raise UsageError(f'rollout: unknown command "{action}"{allowed_names(action, ACTIONS)}', "rollout")
    for flag, actions in _FLAGS_OF.items():
        if getattr(options, flag) is not None and action not in actions:
            raise UsageError(f"rollout {action} does not accept --{flag.replace('_', '-')}", "rollout")
    return {"status": _status, "history": _history, "undo": _undo}.get(action, _mark(action))(session, options, what)


def _objects(session: VerbSession, options: argparse.Namespace, what: list[str]) -> list[tuple[Kind, str, str | None]]:
    if not options.filename:
        return selected(session, targets_of(session, what), options)
    if what or options.selector:
        raise UsageError("-f FILE excludes kinds, names and selectors")
    objects, failed = read_objects(session, options.filename, namespace_of(session, options) or "default")
    if failed:
        raise RolloutError("nothing was done")
    return [(kind_of(raw), raw["metadata"]["name"], raw["metadata"].get("namespace")) for _, raw in objects]


def _for_each(
    session: VerbSession,
    options: argparse.Namespace,
    what: list[str],
    work: Callable[[Kind, Raw], None],
) -> int:
    """Run the action for each object; an error of one object does not affect the others."""
    failed = 0
    for kind, name, namespace in _objects(session, options, what):
        try:
            work(kind, get_object(session, kind, name, namespace))
        except (RolloutError, RpcError) as error:
            session.error(str(error))
            failed += 1
    return 1 if failed else 0


# -- status ---------------------------------------------------------------------------------------------------------


def _status(session: VerbSession, options: argparse.Namespace, what: list[str]) -> int:
    limit = 0.0
    if options.timeout is not None:
        try:
            limit = parse_duration(options.timeout)
        except DurationError as fault:
            raise UsageError(f"--timeout {options.timeout}: {fault}") from fault
    revision = options.revision or 0
    if revision < 0:
        raise UsageError(f"revision must be a positive integer: {revision}")

    def show(kind: Kind, raw: Raw) -> None:
        progress = rollout_progress(raw, revision)
        session.write(progress.text + "\n")
        if progress.done or options.watch == "false":
            return
        looks = bool(limit) or not session.streams
        follow = _look_again(session, kind, raw, limit or math.inf) if looks else _changes(session, kind, raw)
        for changed in follow:
            progress = rollout_progress(changed, revision)
            session.write(progress.text + "\n")
            if progress.done:
                return
        raise RolloutError("the watch ended before the rollout did")

    return _for_each(session, options, what, show)


def _changes(session: VerbSession, kind: Kind, raw: Raw) -> Any:
    """Yield the object after each change."""
    meta = raw["metadata"]
    since = int(meta["resourceVersion"])
    with session.daemon.subscribe(
        "objects.watch", kind=kind.name, since=since, **where(kind, meta.get("namespace"))
    ) as changes:
        for change in changes:
            found = change["object"]
            if found["metadata"]["name"] != meta["name"]:
                continue
            if change["type"] == "DELETED":
                raise RolloutError("object has been deleted")
            yield found


def _look_again(session: VerbSession, kind: Kind, raw: Raw, limit: float) -> Any:
    """Yield the object after each change until the time limit, by polling."""
    meta = raw["metadata"]
    seen = meta["resourceVersion"]
    while limit > 0:
        session.sleep(min(POLL_INTERVAL_S, limit))
        limit -= POLL_INTERVAL_S
        found = get_object(session, kind, meta["name"], meta.get("namespace"))
        if found["metadata"]["resourceVersion"] != seen:
            seen = found["metadata"]["resourceVersion"]
            yield found
    raise RolloutError("timed out waiting for the condition")


# -- history and undo -----------------------------------------------------------------------------------------------


@attrs.frozen
class _History:
    """Revisions of a workload by number, with a function that returns the template of a revision."""

    revisions: Mapping[int, Raw]
    of_deployment: bool

    def template(self, number: int) -> Raw:
        raw = self.revisions[number]
        if self.of_deployment:
            found: Raw = (raw.get("spec") or {}).get("template") or {}
            return found
        template = (((raw.get("data") or {}).get("spec")) or {}).get("template") or {}
        return {name: value for name, value in template.items() if name != "$patch"}


def _history_of(session: VerbSession, kind: Kind, raw: Raw) -> _History:
    meta = raw["metadata"]
    if kind.name not in ROLLED_OUT:
        raise RolloutError(f"no history viewer has been implemented for {kind_text(kind)}")
    deployment = kind.name == "Deployment"
    labels = ((raw.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    found = session.daemon.call(
        "objects.list",
        kind="ReplicaSet" if deployment else "ControllerRevision",
        namespace=meta.get("namespace"),
        label_selector=",".join(f"{key}={value}" for key, value in sorted(labels.items())) or None,
    )["items"]
    revisions: dict[int, Raw] = {}
    for each in found:
        if any(owner.get("uid") == meta["uid"] for owner in each["metadata"].get("ownerReferences") or ()):
            number = (each["metadata"].get("annotations") or {}).get(REVISION) if deployment else each.get("revision")
            if number and (revision := whole_number(str(number))) is not None:
                revisions[revision] = each
    return _History(dict(sorted(revisions.items())), deployment)


def kind_text(kind: Kind) -> str:
    return f"{kind.name}.{kind.group}" if kind.group else kind.name


def _history(session: VerbSession, options: argparse.Namespace, what: list[str]) -> int:
    output = output_of(options.output, _FORMS)
    number = options.revision or 0
    if number < 0:
        raise UsageError(f"revision must be a positive integer: {number}")

    def show(kind: Kind, raw: Raw) -> None:
        history = _history_of(session, kind, raw)
        if number and number not in history.revisions:
            raise RolloutError("unable to find the specified revision")
        chosen = [history.revisions[number]] if number else list(history.revisions.values())
        if output.form == "name":
            session.write("".join(f"{documents.name(each)}\n" for each in chosen))
        elif output.form in ("yaml", "json"):
            written = documents.as_yaml if output.form == "yaml" else documents.as_json
            session.write(written(chosen[0] if number else documents.listing(chosen)))
        elif number:
            cause = (history.revisions[number]["metadata"].get("annotations") or {}).get(CHANGE_CAUSE) or ""
            text = described(history.template(number), cause)
            session.write(f"{documents.name(raw)} with revision #{number}\n{text}\n")
        else:
            session.write(f"{documents.name(raw)} \n{revisions_table(history.revisions, session.style)}\n")

    return _for_each(session, options, what, show)


def _undo(session: VerbSession, options: argparse.Namespace, what: list[str]) -> int:
    number = options.to_revision or 0
    dry_run = options.dry_run != "none"

    def go_back(kind: Kind, raw: Raw) -> None:
        name = raw["metadata"]["name"]
        if kind.name not in ROLLED_OUT:
            raise RolloutError(f"no rollbacker has been implemented for {kind_text(kind)}")
        history = _history_of(session, kind, raw)
        to = number or _the_one_before(history, kind, name)
        if to not in history.revisions:
            raise RolloutError(f"unable to find specified revision {to} in history")
        if (raw.get("spec") or {}).get("paused") and kind.name == "Deployment":
            why = "you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again"
            raise RolloutError(why)
        template = _without_hash(history.template(to))
        if template == _without_hash(raw["spec"]["template"]):
            result = f"skipped rollback (current template already matches revision {number})"
            session.write(f"{documents.name(raw)} {result}\n")
            return
        _patch(session, kind, raw, _back_to(raw, history, to, template), "json", dry_run=dry_run)
        session.write(f"{documents.name(raw)} rolled back{' (dry run)' if dry_run else ''}\n")

    return _for_each(session, options, what, go_back)


def _the_one_before(history: _History, kind: Kind, name: str) -> int:
    numbers = sorted(history.revisions)
    if len(numbers) > 1:
        return numbers[-2]
    if kind.name == "Deployment":
        raise RolloutError(f'no rollout history found for deployment "{name}"')
    raise RolloutError("no last revision to roll back to")


def _back_to(raw: Raw, history: _History, number: int, template: Raw) -> list[Raw]:
    """Return the patch that restores the template; a Deployment also gets the annotations of that revision."""
    patch: list[Raw] = [{"op": "replace", "path": "/spec/template", "value": template}]
    if history.of_deployment:
        now = raw["metadata"].get("annotations") or {}
        then = history.revisions[number]["metadata"].get("annotations") or {}
        annotations = {name: value for name, value in now.items() if name in _KEPT}
        annotations |= {name: value for name, value in then.items() if name not in _KEPT}
        patch.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
    return patch


def _without_hash(template: Raw) -> Raw:
    meta = template.get("metadata") or {}
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name != _TEMPLATE_HASH}
    return {**template, "metadata": {**meta, "labels": labels}}


def _patch(session: VerbSession, kind: Kind, raw: Raw, patch: Any, patch_type: str, *, dry_run: bool) -> Raw:
    meta = raw["metadata"]
    answer: Raw = session.daemon.call(
        "objects.patch",
        kind=kind.name,
        name=meta["name"],
        patch=patch,
        type=patch_type,
        dry_run=dry_run,
        **where(kind, meta.get("namespace")),
    )
    found: Raw = answer["object"]
    return found


# -- restart, pause, resume -----------------------------------------------------------------------------------------


def _mark(action: str) -> Callable[[VerbSession, argparse.Namespace, list[str]], int]:
    def run(session: VerbSession, options: argparse.Namespace, what: list[str]) -> int:
        output = output_of(options.output, _FORMS)
        dry_run = options.dry_run != "none"

        def change(kind: Kind, raw: Raw) -> None:
            patch = _patch_for(action, kind, raw, stamp(session.cluster_now()))
            changed = _patch(session, kind, raw, patch, "merge", dry_run=dry_run)
            result = {"restart": "restarted", "pause": "paused", "resume": "resumed"}[action]
            if output.form == "name":
                session.write(f"{documents.name(changed)}\n")
            elif output.form in ("yaml", "json"):
                session.write((documents.as_yaml if output.form == "yaml" else documents.as_json)(changed))
            else:
                session.write(f"{documents.name(changed)} {result}{' (dry run)' if dry_run else ''}\n")

        return _for_each(session, options, what, change)

    return run


def _patch_for(action: str, kind: Kind, raw: Raw, now: str) -> Raw:
    """Return the patch that performs the action.

    Raises RolloutError if the object's state does not allow the action.
    """
    subject = f'{kind.plural}{"." + kind.group if kind.group else ""} "{raw["metadata"]["name"]}"'
    paused = bool((raw.get("spec") or {}).get("paused"))
    if action == "restart":
        if kind.name not in ROLLED_OUT:
            raise RolloutError(f"{subject} restarting is not supported")
        if paused:
            raise RolloutError(f"{subject} can't restart paused deployment (run rollout resume first)")
        template = raw["spec"]["template"]
        if ((template.get("metadata") or {}).get("annotations") or {}).get(_RESTARTED_AT) == now:
            why = (
                "if restart has already been triggered within the past second, please wait before attempting to trigger"
            )
            raise RolloutError(f"{subject} {why} another")
        return {"spec": {"template": {"metadata": {"annotations": {_RESTARTED_AT: now}}}}}
    if kind.name != "Deployment":
        raise RolloutError(f"{subject} {'pausing' if action == 'pause' else 'resuming'} is not supported")
    if paused == (action == "pause"):
        raise RolloutError(f"{subject} is {'already' if paused else 'not'} paused")
    return {"spec": {"paused": action == "pause"}}
