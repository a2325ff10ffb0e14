"""explain: shows the cause of pending pods with remedies, verdicts and scores of a pod, and the fields of a kind.

The output begins with the cause, and with remedies that were verified. Verdicts and scores of a pod follow; if pods are
pending, one of these is shown. The manifest of -f is a Pod or a workload; for a workload, a pod with its template is
explained.
"""

import argparse
import shlex
from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.kinds import POD_TEMPLATES, Kind, kind_of, lookup
from kschedd.api.text.similar import did_you_mean
from kschedd.dumps.completion import SECRET_FIELDS
from kschedd.printing import documents
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    LiveState,
    UsageError,
    VerbParser,
    namespace_flags,
    namespace_of,
    output_flag,
    output_of,
    verb,
    whole_number,
)
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.paused import note_if_paused
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import pod_key, where, with_near_name
from kschedd.verbs.command_line.workload_pods import with_workload, workload_named
from kschedd.verbs.objects import fields
from kschedd.verbs.objects.manifests import file_flag, read_manifests, request_limit
from kschedd.verbs.scheduler.manifest_changes import file_diff
from kschedd.verbs.scheduler.pools import pool_sources

MOST_REMEDIES: Final = 5  # maximum number of groups of pending pods with a search for remedies
MOST_EXPLAINED: Final = 50  # maximum number of pods and workloads of -f, each explained on its own fork
_FORMS = ("table", "json", "yaml")


def pod_of_manifest(raw: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the Pod in a manifest, or a Pod with the pod template in it. Return None if the kind has no pods."""
    kind = kind_of(raw).name
    if kind == "Pod":
        return dict(raw)
    if kind not in POD_TEMPLATES:
        return None
    template: Any = raw
    for field in POD_TEMPLATES[kind]:
        template = template.get(field) if isinstance(template, Mapping) else None
    if not isinstance(template, Mapping):
        template = {}
    meta, own = raw.get("metadata") or {}, template.get("metadata") or {}
    made = {**own, "generateName": f"{meta.get('name') or kind.lower()}-"} if isinstance(own, Mapping) else {}
    made.pop("name", None)
    if meta.get("namespace"):
        made["namespace"] = meta["namespace"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": template.get("spec") or {}}


def _words(words: VerbParser) -> None:
    words.add_argument("pod", nargs="*", metavar="POD | WORKLOAD/NAME | podgroup NAME | KIND[.FIELD...]")
    file_flag(words, needed=False)
    words.add_argument("--node", default="", metavar="NODE", help="explain only this node")
    words.add_argument("--timing", action="store_true", help="print the duration of each step")
    words.add_argument("--all", action="store_true", help="print every node")
    words.add_argument(
        "--attempt", type=whole_number, metavar="N", help="explain this past attempt, with the objects of that time"
    )
    words.add_argument("--pending", action="store_true", help="explain all pending pods, grouped by cause")
    words.add_argument(
        "--from",
        dest="origin",
        default="",
        metavar="DUMP",
        help="use the cluster in a dump, without a daemon (command line only)",
    )
    words.add_argument(
        "--pools",
        type=path_text,
        action="append",
        default=[],
        metavar="FILE",
        help="node pools (docs/POOLS.md): also explain why no pool launches a node for a pending pod; default: the "
        "pools of `run --pools`",
    )
    words.add_argument("-A", "--all-namespaces", action="store_true", help="with --pending: all namespaces")
    namespace_flags(words)
    output_flag(words, _FORMS)


@verb(
    "explain",
    "Explain why a workload or pod is pending, with tested remedies. KIND.FIELD: document a field.",
    _words,
    examples=(
        "explain deployment/web",
        "explain web-0",
        "explain --pending -A",
        "explain node/node-a",
        "explain web-0 --node node-a",
        "explain web-0 --attempt 2",
        "explain web-0 --pools pools.yaml",
        "explain -f pod.yaml",
        "explain -f deployment.yaml",
        "explain podgroup training",
        "explain pod.spec",
    ),
    completes="pod",
    live=LiveState.PENDING,
)
def explain(session: VerbSession, options: argparse.Namespace) -> int:
    form = output_of(options.output, _FORMS).form
    if options.origin:
        raise UsageError(
            "--from is only available on the command line: `kschedd explain --from DUMP ...`; use `load` here"
        )
    names = options.pod[1:] if len(options.pod) > 1 and lookup(options.pod[0]).name == "Pod" else options.pod
    namespace = namespace_of(session, options)
    if options.pending:
        if names or options.filename:
            raise UsageError("--pending explains all pending pods: it excludes names and -f FILE")
        return _explain_pending(session, options, form)
    group = _group_named(options.pod)
    if group and not options.filename:
        return _explain_group(session, group, namespace or "default", form)
    kind = None if options.filename or len(options.pod) != 1 else fields.kind_of_path(options.pod[0])
    if kind is not None:
        session.write(fields.documentation(kind, options.pod[0], recursive=options.recursive))
        if "." not in options.pod[0]:
            _note_pod_named(session, options.pod[0], namespace)
        return 0
    if options.filename:
        if names:
            raise UsageError("a pod name excludes -f FILE")
        if options.attempt is not None:
            raise UsageError("--attempt requires the name of a pod, not -f FILE")
        answers, failed = _of_files(session, options, namespace or "default")
    elif (workload := workload_named(names, ("CronJob", "Node", "ResourceQuota"))) is not None:
        answers, failed = [_of_workload(session, options, *workload, namespace)], 0
    elif len(names) == 1:
        answers, failed = [_of_pod(session, options, names[0], namespace)], 0
    else:
        raise UsageError("KIND/NAME, a pod name, --pending or -f FILE is required")
    for answer in answers:
        if "verdicts" in answer:
            _check_node(options.node, answer)
    if not options.filename and options.attempt is None and not options.node:
        answers = [_with_pools(session, options, answer) for answer in answers]
    if form != "table":
        whole = answers[0] if len(answers) == 1 else answers
        if answers:
            session.write(documents.as_json(whole) if form == "json" else documents.as_yaml(whole))
        return 1 if failed else 0
    from kschedd.printing.reports.causes import diagnosis
    from kschedd.printing.reports.explaining import explanation, timing
    from kschedd.printing.reports.pools import pod_launch_text
    from kschedd.printing.terminal.tables import flowing

    if not options.filename:
        note_if_paused(session)
    for place, answer in enumerate(answers):
        text = diagnosis(answer, session.style)
        if "verdicts" in answer:
            text += "\n" * bool(text) + explanation(answer, session.style, node=options.node, every_node=options.all)
        if "pools" in answer:
            text += "\n" + pod_launch_text(answer["pools"])
        text += timing(answer, session.style) if options.timing else ""
        if not options.filename and _never_attempted(session, answer):
            note = f"{answer['pod']} has not been attempted yet; this is the result of an attempt now.\n\n"
            text = flowing(note, session.style) + text
        session.write(("\n" if place else "") + text)
    return 1 if failed else 0


def _note_pod_named(session: VerbSession, word: str, namespace: str | None) -> None:
    """Print how to explain the pod whose name is also the name of a kind, if there is one."""
    from kschedd.rpc.errors import ConnectionLostError, NoDaemonError

    try:
        session.daemon.call("objects.get", kind="Pod", name=word, namespace=namespace or "default")
    except (RpcError, ConnectionLostError, NoDaemonError):
        return
    session.note(f"there is a pod of that name: explain pod/{word}")


def _with_pools(session: VerbSession, options: argparse.Namespace, answer: Any) -> Any:
    """Add the decision of the autoscaler about a pending pod to the pod's explanation, if there are node pools."""
    pod = answer.get("pod")
    if not isinstance(pod, str) or answer.get("node") or answer.get("reserved"):
        return answer
    found = session.daemon.call("pools.explain", pod=pod, pools=pool_sources(session, options.pools, "explain"))
    return answer if found is None else {**answer, "pools": found}


def _never_attempted(session: VerbSession, answer: Mapping[str, Any]) -> bool:
    """Return whether the pod of an explanation is in the queue and has had no attempt."""
    pod = answer.get("pod")
    if not isinstance(pod, str) or any(answer.get(name) for name in ("node", "attempt", "gated_by")):
        return False
    try:
        entry = session.daemon.call("queue.pod", pod=pod)
    except RpcError:  # the pod was bound or deleted
        return False
    attempts: int = entry.get("attempts", 0)
    begun = 1 if entry.get("place") == "in_flight" else 0  # the queue counts an attempt before it begins
    return attempts <= begun


def _of_pod(session: VerbSession, options: argparse.Namespace, name: str, namespace: str | None) -> Any:
    """Return the explanation of a pod in its present state, with the diagnosis of its workload."""
    params = {} if options.attempt is None else {"attempt": options.attempt}
    space, _, own = pod_key(name, namespace).partition("/")
    found: dict[str, Any] = {}
    if not params and not options.node:
        try:
            found = _diagnosis(session, "Pod", own, space)
        except RpcError as error:
            if error.code != "not_found":  # a deleted pod is explained by its last attempt
                raise
    try:
        answer = call_about_pod(session, name, namespace, "scheduler.explain", **params)
    except RpcError as error:
        if found:  # no profile has the pod's scheduler name, which is the cause
            return found
        raise with_workload(session.daemon.call, error, name, namespace) from error
    return {**answer, **found}


def _of_workload(
    session: VerbSession, options: argparse.Namespace, kind: Kind, name: str, namespace: str | None
) -> Any:
    """Return the diagnosis of a workload, and the explanation of the examined pod, if any."""
    try:
        found = _diagnosis(session, kind.name, name, namespace or "default")
    except RpcError as error:
        raise with_near_name(session, error, kind, name, namespace or "default") from error
    if not found["examined"]:
        return found
    try:
        answer = session.daemon.call("scheduler.explain", pod=found["examined"])
    except RpcError:  # the diagnosis reports a missing profile or missing pods
        return found
    return {**answer, **found}


def _diagnosis(session: VerbSession, kind: str, name: str, namespace: str, **more: Any) -> dict[str, Any]:
    if session.remedies_for:
        more["program"] = session.remedies_for
    found: dict[str, Any] = session.daemon.call(
        "causes.explain", kind=kind, name=name, **where(lookup(kind), namespace), **more
    )
    return found


def _explain_pending(session: VerbSession, options: argparse.Namespace, form: str) -> int:
    namespace = None if options.all_namespaces else namespace_of(session, options) or "default"
    program = {"program": session.remedies_for} if session.remedies_for else {}
    groups = session.daemon.call("causes.pending", namespace=namespace, remedies=MOST_REMEDIES, **program)
    if form != "table":
        session.write(documents.as_json(groups) if form == "json" else documents.as_yaml(groups))
        return 0
    from kschedd.printing.reports.causes import pending

    session.write(pending(groups, namespace, session.style, searched=MOST_REMEDIES))
    return 0


def _group_named(words: list[str]) -> str:
    """Return the PodGroup that `podgroup NAME` or `podgroup/NAME` names; "" for other words."""
    kind, slash, name = words[0].partition("/") if words else ("", "", "")
    if kind.partition(".")[0].lower() not in ("podgroup", "podgroups"):
        return ""
    return name if slash and len(words) == 1 else words[1] if len(words) == 2 and not slash else ""


def _explain_group(session: VerbSession, name: str, namespace: str, form: str) -> int:
    answer = session.daemon.call("scheduler.explain_group", pod_group=f"{namespace}/{name}")
    found = _diagnosis(session, "PodGroup.scheduling.k8s.io", name, namespace) if answer["exists"] else {}
    answer |= found
    if form != "table":
        session.write(documents.as_json(answer) if form == "json" else documents.as_yaml(answer))
        return 0
    from kschedd.printing.reports.causes import diagnosis
    from kschedd.printing.reports.explaining_group import group_explanation

    text = diagnosis(answer, session.style)
    session.write(text + "\n" * bool(text) + group_explanation(answer, session.style))
    return 0


def _of_files(session: VerbSession, options: argparse.Namespace, namespace: str) -> tuple[list[Any], int]:
    """Return the explanations of all pods in the files, and the number of failures."""
    import msgpack

    objects, failed = read_manifests(session, options.filename, namespace)
    pods = [(manifest, raw, pod) for manifest, raw in objects if (pod := pod_of_manifest(raw)) is not None]
    if not pods and not failed:
        raise UsageError(f"-f FILE contains no pods or workloads; supported kinds: Pod, {', '.join(POD_TEMPLATES)}")
    answers = []
    apply = shlex.join(["apply", *(word for file in options.filename for word in ("-f", file))])
    whole = (
        f"name fewer files, or group all pending pods by cause on a fork: `kschedd fork create trial`, "
        f"`kschedd fork run trial {apply}`, `kschedd fork run trial explain --pending -A`"
    )
    if len(pods) > MOST_EXPLAINED:
        raise UsageError(
            f"-f contains {len(pods):,} pods and workloads, and explain takes at most {MOST_EXPLAINED}: {whole}"
        )
    manifests = [_without_data(raw) for _, raw in objects]
    size = len(msgpack.packb(manifests))
    limit = request_limit(session, size)
    if size > limit:
        raise UsageError(f"the objects of -f have {size:,} bytes, and a request has at most {limit:,}: {whole}")
    for manifest, raw, pod in pods:
        found = _diagnosis_of_new(session, raw, manifests)
        for remedy in found.get("remedies", ()):
            program = remedy["commands"][0].partition(" ")[0]
            remedy["commands"] = [f"{program} {apply}", *remedy["commands"]]
            remedy["manifest_diff"] = file_diff(manifest, remedy["changes"]) or remedy["manifest_diff"]
        try:
            answers.append({**session.daemon.call("scheduler.explain", pod=pod), **found})
        except RpcError as error:
            if found:  # the pod is rejected, which is the cause
                answers.append(found)
                continue
            session.error(f"{manifest.source}:{manifest.line}: {error}")
            failed += 1
    return answers, failed


def _without_data(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest without the data of a Secret or ConfigMap, which affects no decision."""
    dropped = SECRET_FIELDS.get(str(raw.get("kind")), ())
    return {field: value for field, value in raw.items() if field not in dropped}


def _diagnosis_of_new(session: VerbSession, raw: Mapping[str, Any], manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the diagnosis of a workload that does not exist yet.

    The diagnosis is empty if nothing is wrong, or if the workload cannot be applied.
    """
    meta = raw.get("metadata") or {}
    if not meta.get("name"):
        return {}
    namespace = meta.get("namespace") or "default"
    try:
        found = _diagnosis(session, kind_of(raw).name, meta["name"], namespace, manifests=manifests)
    except RpcError:  # the explanation of the workload's pod contains the reason
        return {}
    return {} if found["cause"]["code"] == "NothingIsWrong" else found


def _check_node(node: str, answer: Mapping[str, Any]) -> None:
    known = {str(v.get("node")) for v in answer.get("verdicts") or ()} | set(answer.get("totals") or ())
    if node and node not in known:
        raise UsageError(f'there is no node "{node}"{did_you_mean(node, known)}')


def call_about_pod(session: VerbSession, word: str, namespace: str | None, method: str, **params: Any) -> Any:
    """Return the result of a call about one pod. If the pod does not exist, the error contains similar names."""
    key = pod_key(word, namespace)
    try:
        return session.daemon.call(method, pod=key, **params)
    except RpcError as error:
        namespace, _, name = key.partition("/")
        raise with_near_name(session, error, lookup("pod"), name, namespace) from error
