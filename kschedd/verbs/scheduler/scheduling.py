"""Verbs for the scheduler itself: queue, waiting, allow, reject, status, weights, activate."""

import argparse
from typing import Any

from kschedd.api.schemas.kinds import lookup
from kschedd.api.text.similar import allowed_names
from kschedd.printing.reports.daemon_state import clients_table, limits_table
from kschedd.printing.reports.scheduling import (
    PLACES,
    history_table,
    on_the_way_text,
    plugin_costs_table,
    profiles_of,
    queue_table,
    queue_text,
    status_text,
    stays_text,
    waiting_table,
    weights_table,
)
from kschedd.printing.terminal.tables import render
from kschedd.verbs.command_line.answers import FORMS, write_answer, write_listing
from kschedd.verbs.command_line.grammar import (
    LiveState,
    UsageError,
    VerbParser,
    namespace_flags,
    namespace_of,
    output_flag,
    verb,
    whole_number,
)
from kschedd.verbs.command_line.paused import note_if_paused
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import pod_key
from kschedd.verbs.scheduler.explain import call_about_pod

_MOVABLE = ("active", "backoff", "unschedulable")

# -- queue ----------------------------------------------------------------------------------------------------------


def _queue_words(words: VerbParser) -> None:
    words.add_argument(
        "what", nargs="*", metavar="[pod NAME | PLACE | move POD PLACE]", help="one of " + ", ".join(PLACES)
    )
    words.add_argument("--limit", type=whole_number, default=100, metavar="N", help="print at most N pods (100)")
    namespace_flags(words)
    output_flag(words, FORMS)


@verb(
    "queue",
    "Show the scheduling queue, or one pod's moves through it; `queue move` moves a pod.",
    _queue_words,
    examples=("queue", "queue unschedulable", "queue pod web-0", "queue move web-0 active"),
    completes="queue",
)
def queue(session: VerbSession, options: argparse.Namespace) -> int:
    what = list(options.what)
    if what[:1] == ["move"]:
        return _move(session, options, what[1:])
    if what and (lookup(what[0]).name == "Pod" or "/" in what[0]):
        names = what if "/" in what[0] else what[1:]
        if len(names) != 1:
            raise UsageError("`queue pod NAME` requires one name")
        return _queue_of(session, options, names[0])
    if len(what) > 1 or (what and what[0].replace("-", "_") not in PLACES):
        pod = "" if len(what) > 1 else f"; a pod: queue pod {what[0]}"
        raise UsageError(f'unknown place "{" ".join(what)}"{allowed_names(what[0], PLACES)}{pod}', "queue")
    place = {"place": what[0].replace("-", "_")} if what else {}
    answer = session.daemon.call("queue.list", limit=options.limit, **place)
    if write_answer(session, options.output, answer):
        return 0
    note_if_paused(session)
    counts = queue_text(answer["counts"], session.style)
    if not what:
        on_the_way = on_the_way_text(session.daemon.call("scheduler.status"), session.style)
        counts += session.style.plain(f" · {on_the_way}") if on_the_way else ""
    session.write(counts + "\n")
    pods = answer.get("pods") or []
    if pods:
        session.write("\n" + render(queue_table(pods), session.style))
    total = sum(count for name, count in answer["counts"].items() if not what or name == place["place"])
    if isinstance(total, int) and total > len(pods) == options.limit:
        session.write(f"{session.style.plain('…')} and {total - len(pods)} more (--limit N shows more)\n")
    return 0


def _move(session: VerbSession, options: argparse.Namespace, words: list[str]) -> int:
    if len(words) != 2:
        raise UsageError(f"queue move POD PLACE: allowed places are {', '.join(_MOVABLE)}")
    if words[1] not in _MOVABLE:
        raise UsageError(f'queue move: unknown place "{words[1]}"{allowed_names(words[1], _MOVABLE)}')
    answer = call_about_pod(session, words[0], namespace_of(session, options), "queue.move", place=words[1])
    session.write(f"{answer['pod']} moved to {answer['place'].replace('_', ' ')}\n")
    return 0


def _queue_of(session: VerbSession, options: argparse.Namespace, word: str) -> int:
    answer = call_about_pod(session, word, namespace_of(session, options), "queue.pod")
    if write_answer(session, options.output, answer):
        return 0
    note_if_paused(session)
    if answer.get("place") in PLACES:
        session.write(render(queue_table([answer]), session.style))
    else:
        session.write(f"{answer.get('key') or word} is not in the queue.\n")
    session.write(stays_text(answer))
    if answer.get("history"):
        session.write("\n" + render(history_table(answer["history"]), session.style))
    return 0


def _activate_words(words: VerbParser) -> None:
    words.add_argument("pods", nargs="*", metavar="POD")
    words.add_argument("--all", action="store_true", help="all pods in the queue")
    namespace_flags(words)


@verb(
    "activate",
    "Move unschedulable pods to the active queue.",
    _activate_words,
    examples=("activate web-0", "activate --all"),
    completes="pod",
    live=LiveState.PENDING,
)
def activate(session: VerbSession, options: argparse.Namespace) -> int:
    if bool(options.pods) == options.all:
        raise UsageError("pod names or --all are required")
    namespace = namespace_of(session, options)
    params: dict[str, Any] = {"all": True} if options.all else {"pods": [pod_key(p, namespace) for p in options.pods]}
    moved = session.daemon.call("queue.activate", **params)["moved"]
    for key in moved:
        session.write(f"pod/{key} activated\n")
    if not moved:
        session.write_error("No pod was moved: none of them is in the queue.\n")
    return 0


# -- waiting pods ---------------------------------------------------------------------------------------------------


def _output_words(words: VerbParser) -> None:
    output_flag(words, FORMS)


@verb("waiting", "List pods that wait at Permit.", _output_words, examples=("waiting", "waiting -o json"))
def waiting(session: VerbSession, options: argparse.Namespace) -> int:
    answer = session.daemon.call("waiting.list")
    if options.output == "table":
        note_if_paused(session)
    return write_listing(session, options.output, answer, waiting_table, "No pod is kept waiting by a Permit plugin.")


def _decide_words(words: VerbParser) -> None:
    words.add_argument("pod", metavar="POD")
    words.add_argument(
        "--plugin-name",
        dest="plugin",
        metavar="NAME",
        help="only for this plugin; default: all plugins for which the pod waits",
    )
    words.renamed["--plugin"] = "--plugin-name"
    words.add_argument("--reason", metavar="TEXT", help="reason of a rejection")
    namespace_flags(words)


@verb(
    "allow",
    "Allow a pod that waits at Permit.",
    _decide_words,
    examples=("allow web-0", "allow web-0 --plugin-name Coscheduling"),
    completes="pod",
    live=LiveState.WAITING,
)
def allow(session: VerbSession, options: argparse.Namespace) -> int:
    return _decide(session, options, "waiting.allow", "allowed")


@verb(
    "reject",
    "Reject a pod that waits at Permit.",
    _decide_words,
    examples=("reject web-0", "reject web-0 --reason 'not today'"),
    completes="pod",
    live=LiveState.WAITING,
)
def reject(session: VerbSession, options: argparse.Namespace) -> int:
    return _decide(session, options, "waiting.reject", "rejected")


def _decide(session: VerbSession, options: argparse.Namespace, method: str, result: str) -> int:
    given = {"plugin": options.plugin, "reason": options.reason if method == "waiting.reject" else None}
    answer = call_about_pod(
        session,
        options.pod,
        namespace_of(session, options),
        method,
        **{k: v for k, v in given.items() if v is not None},
    )
    by = f" for {options.plugin}" if options.plugin else ""
    session.write(f"pod/{answer.get('pod', options.pod)} {result}{by}\n")
    return 0


# -- status, configuration ------------------------------------------------------------------------------------------


def _status_words(words: VerbParser) -> None:
    words.add_argument("--limits", action="store_true", help="list the limits of the daemon with their present usage")
    output_flag(words, FORMS)


@verb(
    "status",
    "Show the state of the daemon.",
    _status_words,
    aliases=("info",),
    examples=("status", "status --limits", "status -o json"),
)
def status(session: VerbSession, options: argparse.Namespace) -> int:
    if options.limits:
        bounds = session.daemon.call("daemon.limits")
        if not write_answer(session, options.output, bounds):
            session.write(render(limits_table(bounds), session.style))
        return 0
    info = session.daemon.call("daemon.info")
    if http := session.daemon.call("rpc.ping").get("http"):
        info = {**info, "http": http}
    now = session.daemon.call("scheduler.status")
    if not write_answer(session, options.output, {**info, "status": now}):
        session.write(status_text(info, now, session.style))
    return 0


@verb("clients", "List the clients of the daemon's socket.", _output_words, examples=("clients", "clients -o json"))
def clients(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("daemon.clients")
    if not write_answer(session, options.output, found):
        session.write(render(clients_table(found), session.style))
    return 0


@verb(
    "costs",
    "Show the time, failures and timeouts of calls to out-of-tree plugins and extenders.",
    _output_words,
    whole="plugin costs",
    examples=("costs", "costs -o json"),
)
def costs(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("daemon.info").get("plugins") or []
    nothing = "no out-of-tree plugin or extender has been called"
    return write_listing(session, options.output, found, plugin_costs_table, nothing)


def _weights_words(words: VerbParser) -> None:
    words.add_argument("profile", nargs="?", default="", metavar="PROFILE")
    output_flag(words, FORMS)


@verb(
    "weights",
    "List score plugins and their weights.",
    _weights_words,
    examples=("weights", "weights default-scheduler"),
    completes="profile",
)
def weights(session: VerbSession, options: argparse.Namespace) -> int:
    config = session.daemon.call("scheduler.config")
    names = [name for name, _ in profiles_of(config)]
    if options.profile and options.profile not in names:
        raise UsageError(f'unknown profile "{options.profile}": there are {", ".join(names)}')
    table = weights_table(config, options.profile)
    rows = [dict(zip(("profile", "plugin", "weight"), (a, b, int(c)), strict=True)) for a, b, c in table.rows]
    if not write_answer(session, options.output, rows):
        session.write(render(table, session.style))
    return 0
