"""events, logs, decisions: verbs that show past actions."""

import argparse
from typing import Any

import attrs

from kschedd.api.simulation.annotations import log_text
from kschedd.printing.reports.scheduling import decisions_table, events_table
from kschedd.printing.terminal.tables import Table, render, widths_of
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.answers import FORMS, write_answer, write_listing
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    namespace_flags,
    namespace_of,
    output_flag,
    output_of,
    verb,
    whole_number,
)
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import kind_of_word, pod_key
from kschedd.verbs.objects.following import Place, follow


def _events_words(words: VerbParser) -> None:
    words.add_argument("about", nargs="?", metavar="KIND/NAME", help="events of this object")
    words.add_argument("--for", dest="about_flag", metavar="KIND/NAME", help="the same as --for")
    words.add_argument("--types", metavar="LIST", help="events of these types: Normal, Warning")
    words.add_argument("--limit", type=whole_number, metavar="N", help="print at most N events, the latest ones")
    words.add_argument("-w", "--watch", action="store_true", help="then print every new event")
    words.add_argument("--no-headers", action="store_true", help="omit the header line")
    namespace_flags(words, everywhere=True)
    output_flag(words, FORMS)


@verb(
    "events",
    "List events, newest last.",
    _events_words,
    examples=("events -A --types Warning", "events pod/web-0 -w"),
    completes="object",
)
def events(session: VerbSession, options: argparse.Namespace) -> int:
    about = options.about_flag or options.about
    if about and "/" not in about:
        about = f"pod/{about}"
    if about:
        kind, _, name = about.partition("/")
        about = f"{kind_of_word(session, kind).name}/{name}"
    return _events(session, options, about)


def _events(session: VerbSession, options: argparse.Namespace, about: str | None) -> int:
    output = output_of(options.output, FORMS)
    types = _types(options.types)
    namespace = namespace_of(session, options)
    if about and about.startswith("Node/"):
        namespace = None  # an event about a node may be in any namespace
    params: dict[str, Any] = {"for": about, "namespace": namespace, "limit": options.limit}
    answer = session.daemon.call("events.list", **{k: v for k, v in params.items() if v is not None})
    shown = [event for event in answer["events"] if not types or event.get("type") in types]
    written = write_answer(session, options.output, shown)
    if not written and not shown and not options.watch:
        of = f" of {about.lower()}" if about else ""
        session.write_error(f"No events found{of}{f' in {namespace} namespace' if namespace else ''}.\n")
    table = events_table(shown, session.cluster_now(), namespaces=namespace is None)
    if output.form == "table" and shown:
        session.write(render(table, session.style, headers=not options.no_headers))
    if options.watch:
        widths = widths_of(table)

        def show(event: dict[str, Any]) -> None:
            if types and event.get("type") not in types:
                return
            row = events_table([event], session.cluster_now(), namespaces=True)
            if about and _object_of(row.rows[0][4]) != _object_of(about):
                return
            if namespace is not None and row.rows[0][0] not in ("", namespace):
                return
            row = events_table([event], session.cluster_now(), namespaces=namespace is None)
            session.write(render(row, session.style, headers=False, widths=widths))

        def start_over(lost: Place) -> Place:
            """Return the position of the daemon's oldest event; without events, that of the next event."""
            return attrs.evolve(lost, number=None if lost.number == 0 else 0, history=None)

        place = Place("number", "instance").after(answer)
        missed = (
            "it has its events in memory only, so what happened before its start is not known; all since then follow"
        )
        follow(session, "events.watch", {}, place, show, start_over, missed)
    return 0


def _object_of(text: str) -> str:
    kind, _, name = text.partition("/")
    return f"{kind.lower()}/{name}"


def _types(text: str | None) -> frozenset[str]:
    if not text:
        return frozenset()
    types = frozenset(part.capitalize() for part in text.split(","))
    if not types <= {"Normal", "Warning"}:
        raise UsageError(f'--types "{text}": allowed are Normal and Warning')
    return types


def _logs_words(words: VerbParser) -> None:
    words.add_argument("about", metavar="POD")
    words.add_argument("-f", "--follow", dest="watch", action="store_true", help="then print every new event")
    words.add_argument("-c", "--container", default="", metavar="NAME", help="container whose annotation is printed")
    namespace_flags(words)
    output_flag(words, FORMS)


@verb(
    "logs",
    "Print the text in a pod's annotation kschedd.io/logs, or else its events, because containers do not run.",
    _logs_words,
    examples=("logs web-0",),
    completes="pod",
)
def logs(session: VerbSession, options: argparse.Namespace) -> int:
    name = options.about.partition("/")[2] or options.about
    options.types = options.limit = None
    options.no_headers = False
    text = _logged(session, options, name)
    if text:
        session.write(text if text.endswith("\n") else f"{text}\n")
        return 0
    session.write_error(f"Nothing runs in the pods of kschedd, so they have no logs. The events of pod {name}:\n")
    return _events(session, options, f"Pod/{name}")


def _logged(session: VerbSession, options: argparse.Namespace, name: str) -> str:
    """Return the text in the pod's annotation; "" without one, or for a deleted pod, which may have events."""
    try:
        pod = session.daemon.call("objects.get", kind="Pod", name=name, namespace=namespace_of(session, options))
    except RpcError as refusal:
        if refusal.code != "not_found":
            raise
        return ""
    raw = pod["object"]
    containers: list[dict[str, Any]] = list(raw["spec"].get("containers") or ())
    container = options.container or (containers[0]["name"] if len(containers) == 1 else "")
    return log_text(raw["metadata"].get("annotations") or {}, container)


def _decisions_words(words: VerbParser) -> None:
    words.add_argument("pod", nargs="?", metavar="POD", help="decisions about this pod")
    words.add_argument(
        "--limit", type=whole_number, default=20, metavar="N", help="print at most N decisions, the newest (20)"
    )
    namespace_flags(words)
    output_flag(words, FORMS)


@verb(
    "decisions",
    "List the latest decisions of the scheduler.",
    _decisions_words,
    examples=("decisions", "decisions web-0", "decisions --limit 5 -o json"),
    completes="pod",
)
def decisions(session: VerbSession, options: argparse.Namespace) -> int:
    params: dict[str, Any] = {"limit": options.limit}
    if options.pod:
        params["pod"] = pod_key(options.pod, namespace_of(session, options))
    elif options.namespace:
        params["namespace"] = namespace_of(session, options)
    found = session.daemon.call("scheduler.decisions", **params)

    def table(decisions: Any) -> Table:
        return decisions_table(decisions, session.cluster_now())

    return write_listing(session, options.output, found, table, "No decisions yet.")
