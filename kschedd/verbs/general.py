"""kinds, stop, watch: what is about the daemon as a whole, or about other verbs."""

import argparse

from kschedd.printing import documents
from kschedd.printing.screen import first_screen, rows_of
from kschedd.printing.tables import Table, render
from kschedd.verbs.grammar import UsageError, Verb, Words, output_flag, output_of
from kschedd.verbs.session import Session


def _kinds_words(words: Words) -> None:
    output_flag(words, ("table", "json", "yaml"))


def kinds(session: Session, options: argparse.Namespace) -> int:
    form = output_of(options.output, ("table", "json", "yaml")).form
    found = session.daemon.call("objects.kinds")
    if form != "table":
        session.write(documents.as_json(found) if form == "json" else documents.as_yaml(found))
        return 0
    rows = tuple(
        (
            str(kind.get("plural") or ""),
            ",".join(kind.get("short_names") or ()),
            str(kind.get("api_version") or ""),
            str(bool(kind.get("namespaced"))).lower(),
            str(kind["name"]),
            str(kind.get("count", 0)),
        )
        for kind in found
    )
    headers = ("NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "COUNT")
    session.write(render(Table(headers, rows), session.look))
    return 0


def _stop_words(words: Words) -> None:
    words.add_argument("--grace", type=float, metavar="SECONDS", help="that running requests get to end")
    words.add_argument("-y", "--yes", action="store_true", help="do not ask")


def stop(session: Session, options: argparse.Namespace) -> int:
    if not options.yes and not session.confirm("Stop the daemon? What it keeps only in memory is gone."):
        session.complain("The daemon goes on.\n")
        return 1
    session.daemon.call("daemon.stop", **({} if options.grace is None else {"grace_s": options.grace}))
    session.write("the daemon is stopping\n")
    return 0


def _watch_words(words: Words) -> None:
    words.add_argument("command", nargs=argparse.REMAINDER, metavar="VERB ...", help="what to show again and again")
    words.add_argument("-i", "--interval", type=float, default=1.0, metavar="SECONDS", help="between two looks (1)")
    words.add_argument("--times", type=int, default=0, metavar="N", help="end after N looks; default: go on")


def watch(session: Session, options: argparse.Namespace) -> int:
    """The output of another verb, shown afresh every second until the user ends it."""
    import attrs

    from kschedd.verbs.table import find_verb, run_words

    if not options.command:
        raise UsageError("watch what? watch get pods")
    if find_verb(options.command[0]).name == "watch":
        raise UsageError("watch cannot watch itself")
    if options.interval <= 0:
        raise UsageError(f"--interval {options.interval:g}: more than 0 is expected")
    looks = 0
    screen = session.look.width > 0
    if screen:
        session.command("\x1b[?1049h")  # the terminal's other screen: what was there comes back at the end
    try:
        while True:
            shown: list[str] = []
            inner = attrs.evolve(session, write=shown.append, complain=shown.append)
            inner._daemon = session.daemon
            code = run_words(inner, options.command)
            text = "".join(shown)
            every = f"every {options.interval:g} s: {' '.join(options.command)}    (Ctrl-C ends)"
            if screen:
                look = session.measure() if session.measure is not None else session.look  # it may have been resized
                heading = look.paint(every, "dim") + "\n\n"
                taken = rows_of(every, look.width) + 1
                session.command("\x1b[H\x1b[2J")
                session.write(heading + first_screen(text, look, taken))
            else:
                session.write(text)
            looks += 1
            if code == 2 or looks == options.times:
                return code
            session.sleep(options.interval)
    finally:
        if screen:
            session.command("\x1b[?1049l")


VERBS = (
    Verb("kinds", "What kinds of objects there are, and how many of each.", kinds, _kinds_words, ("api-resources",)),
    Verb("stop", "Stop the daemon.", stop, _stop_words),
    Verb(
        "watch",
        "Show another verb's output again and again.",
        watch,
        _watch_words,
        examples=("watch get pods -o wide", "watch -i 0.5 queue"),
        completes="verb",
    ),
)
