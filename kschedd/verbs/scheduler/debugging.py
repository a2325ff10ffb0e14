"""Verbs of the debugger: pause, step through an attempt, inspect it, and change its result."""

import argparse
import re
from typing import Any, Final

from kschedd.api.text import numbers
from kschedd.errors import KscheddError
from kschedd.printing.reports.debugging import breakpoint_text, breakpoints_table, brief_text, stop_text, where_text
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.answers import FORMS, write_answer, write_listing
from kschedd.verbs.command_line.grammar import (
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
from kschedd.verbs.scheduler.timing import is_moment, moment_of, span_of

Raw = dict[str, Any]

#: extension points and outcomes in the daemon's spelling
POINTS: Final = (
    *("preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind"),
)
OUTCOMES: Final = ("rejected", "scheduled", "unschedulable", "preempting", "waiting", "error")
BREAK_ACTIONS: Final = {
    "add": "set a breakpoint",
    "list": "all of them",
    "disable": "pass it from now on",
    "enable": "stop at it again",
    "delete": "remove it",
}
_LOOK_S: Final = 1.0


def _attach(session: VerbSession) -> None:
    """Keep the debugger's state after the connection ends, because each command has its own connection."""
    if session.outlived:
        session.daemon.call("debug.attach", keep=True)


def _control(session: VerbSession, method: str, **given: Any) -> Any:
    _attach(session)
    return session.daemon.call(method, **given)


def _show(session: VerbSession) -> None:
    """Print a short description of the place at which scheduling is stopped."""
    session.write(brief_text(session.daemon.call("debug.where")))


# -- running and stopping -------------------------------------------------------------------------------------------


def _pause_words(words: VerbParser) -> None:
    words.add_argument("--keep", action="store_true", help="keep scheduling paused when this connection ends")
    words.add_argument(
        "--take", action="store_true", help="take control of the debugger from the client that controls it"
    )


@verb(
    "pause",
    "Pause scheduling before the next attempt; everything else continues.",
    _pause_words,
    examples=("pause", "pause --take"),
)
def pause(session: VerbSession, options: argparse.Namespace) -> int:
    if options.keep or options.take:
        session.daemon.call("debug.attach", take=options.take, keep=options.keep or session.outlived)
    _control(session, "debug.pause")
    _show(session)
    return 0


@verb("resume", "Resume scheduling.", examples=("resume",))
def resume(session: VerbSession, options: argparse.Namespace) -> int:
    session.write(stop_text(_control(session, "debug.resume")) + "\n")
    return 0


def _step_words(words: VerbParser) -> None:
    words.add_argument("attempts", nargs="?", type=whole_number, default=1, metavar="N", help="number of attempts (1)")


@verb(
    "step", "Run one scheduling attempt, or N, and stop.", _step_words, whole="debug step", examples=("step", "step 10")
)
def step(session: VerbSession, options: argparse.Namespace) -> int:
    _control(session, "debug.step", attempts=options.attempts)
    state = session.daemon.call("debug.where")
    if state["stopped"]:
        session.write(brief_text(state))
    else:  # no pod is in the active queue
        attempts = "the next attempt" if options.attempts == 1 else f"{options.attempts} attempts"
        session.write(f"No pod is ready: scheduling stops after {attempts}; `{session.program}resume` cancels this.\n")
    return 0


def _next_words(words: VerbParser) -> None:
    words.add_argument(
        "to",
        nargs="?",
        choices=("plugin", "point"),
        default="plugin",
        help="stop at the next plugin or extension point (plugin)",
    )


@verb(
    "next",
    "Run to the next plugin or extension point, and stop.",
    _next_words,
    whole="debug next",
    examples=("next", "next point"),
)
def next_(session: VerbSession, options: argparse.Namespace) -> int:
    _control(session, "debug.next", to=options.to)
    _show(session)
    return 0


def _until_words(words: VerbParser) -> None:
    words.add_argument(
        "what",
        nargs="+",
        metavar="WHEN",
        help="a DURATION, t=TIME, pod NAME, N pods, or a CONDITION: a CEL expression about attempts, scheduled, "
        "failed, pending, waiting, binding, nodes, pods, time",
    )
    namespace_flags(words)


@verb(
    "until",
    "Run until a time, a pod, a number of pods or a condition; Ctrl-C stops at the current position.",
    _until_words,
    whole="debug until",
    examples=("until 30s", "until t=2025-01-01T00:10:00Z", "until pod web-0", "until 100 pods", "until 'pending == 0'"),
)
def until(session: VerbSession, options: argparse.Namespace) -> int:
    given = _goal(session, options, list(options.what))
    if session.streams:
        _attach(session)
        _wait(session, given)
    else:
        _control(session, "debug.until", **given)
        try:
            while not session.daemon.call("debug.state")["stopped"]:
                session.sleep(_LOOK_S)
        except KscheddError:
            # an interruption also pauses scheduling
            session.daemon.call("debug.pause")
            raise
    _show(session)
    return 0


def _wait(session: VerbSession, goal: Raw) -> None:
    """Run scheduling up to the goal in one call, so that an interruption also ends the run."""
    with session.daemon.subscribe("debug.wait", **goal) as ends:
        for end in ends:
            if end.get("moved"):
                session.write_error("No further events are due: scheduling runs, but virtual time cannot advance.\n")


def _goal(session: VerbSession, options: argparse.Namespace, words: list[str]) -> Raw:
    """Return the parameters of `debug.until`. Raises UsageError."""
    if len(words) == 2 and words[0] in ("pod", "pods", "po"):
        key = pod_key(words[1], namespace_of(session, options))
        _warn_of_no_pod(session, key)
        return {"pod": key}
    if len(words) == 2 and (many := numbers.whole_number(words[0])) is not None and words[1] in ("pod", "pods"):
        if not many:
            raise UsageError("the number of pods must be at least 1", "until")
        return {"scheduled": many}
    text = " ".join(words)
    if is_moment(text):
        return {"time_s": moment_of(text)}
    if re.fullmatch(r"\+?\d[\d.a-zµ]*", text):
        return {"seconds": span_of(text)}
    return {"condition": text}


def _warn_of_no_pod(session: VerbSession, key: str) -> None:
    namespace, _, name = key.partition("/")
    try:
        session.daemon.call("objects.get", kind="Pod", name=name, namespace=namespace)
    except RpcError as fault:
        if fault.code != "not_found":
            raise
        session.warn(f'there is no pod "{key}" yet; waiting for it')


# -- looking --------------------------------------------------------------------------------------------------------


def _where_words(words: VerbParser) -> None:
    words.add_argument(
        "--nodes", type=whole_number, default=20, metavar="N", help="print at most N entries of each list (20)"
    )
    output_flag(words, FORMS)


@verb(
    "where",
    "Show where scheduling is stopped, and the state of the attempt.",
    _where_words,
    whole="debug where",
    examples=("where", "where --nodes 5", "where -o json"),
)
def where(session: VerbSession, options: argparse.Namespace) -> int:
    answer = session.daemon.call("debug.where", nodes=options.nodes)
    if not write_answer(session, options.output, answer):
        session.write(where_text(answer, session.style))
    return 0


# -- breakpoints ----------------------------------------------------------------------------------------------------


def _break_words(words: VerbParser) -> None:
    words.add_argument("action", nargs="?", default="list", choices=tuple(BREAK_ACTIONS), help="the action (list)")
    words.add_argument("ids", nargs="*", metavar="ID", help="ids of breakpoints to disable, enable or delete")
    words.add_argument("--pod", default="", metavar="NAME", help="a pod; * and ? are wildcards")
    words.add_argument("-l", "--selector", default="", metavar="SELECTOR", help="pods with these labels")
    words.add_argument(
        "--node", default="", metavar="NAME", help="a node that a plugin evaluates or an attempt chooses"
    )
    words.add_argument(
        "--plugin-name", dest="plugin", default="", metavar="NAME", help="stop before this plugin is called"
    )
    words.renamed["--plugin"] = "--plugin-name"
    points = f"an extension point: {', '.join(POINTS)}"
    words.add_argument("--point", default="", choices=POINTS, metavar="POINT", help=points)
    outcomes = f"what has come of a plugin, or the attempt: {', '.join(OUTCOMES)}"
    words.add_argument("--outcome", default="", choices=OUTCOMES, metavar="OUTCOME", help=outcomes)
    words.add_argument(
        "--if",
        dest="condition",
        default="",
        metavar="CONDITION",
        help="a CEL expression about pod, attempt, point, plugin, outcome, node, nodes, time",
    )
    words.add_argument("--ignore", type=int, default=0, metavar="N", help="ignore the first N hits")
    words.add_argument("--once", action="store_true", help="delete the breakpoint after its first stop")
    words.add_argument("--all", action="store_true", help="all breakpoints")
    namespace_flags(words)
    output_flag(words, FORMS)


@verb(
    "break",
    "Set, list and delete breakpoints.",
    _break_words,
    whole="debug break",
    examples=(
        "break add --pod 'web-*' --outcome unschedulable",
        "break add --plugin-name NodeResourcesFit --node node-a",
        "break add --point score --if 'pod.spec.priority > 100 && nodes > 1' --ignore 3",
        "break",
        "break disable 1",
        "break delete --all",
    ),
    completes="break",
)
def break_(session: VerbSession, options: argparse.Namespace) -> int:
    if options.action == "list":
        return _list_breakpoints(session, options)
    if options.action == "add":
        return _add_breakpoint(session, options)
    for number in _numbers(session, options):
        if options.action == "delete":
            _control(session, "debug.break_delete", id=number)
        else:
            _control(session, "debug.break_set", id=number, enabled=options.action == "enable")
        session.write(f"breakpoint {number} {options.action}d\n")
    if options.action in ("delete", "disable"):
        note_if_paused(session)
    return 0


def _list_breakpoints(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("debug.break_list")
    nothing = "No breakpoints. `debug break add` sets one."
    return write_listing(session, options.output, found, breakpoints_table, nothing)


def _add_breakpoint(session: VerbSession, options: argparse.Namespace) -> int:
    names = ("pod", "selector", "node", "plugin", "point", "outcome", "condition", "ignore", "once")
    given = {name: value for name in names if (value := getattr(options, name))}
    if options.ids:
        raise UsageError(
            f"break add: unexpected argument {options.ids[0]}; "
            "use --pod, --node, --plugin-name, --point, --outcome or --if"
        )
    if "pod" in given:
        given["pod"] = pod_key(given["pod"], namespace_of(session, options) or "*")
    made = _control(session, "debug.break_add", **given)
    if write_answer(session, options.output, made):
        return 0
    session.write(f"breakpoint {made['id']}: {breakpoint_text(made)}\n")
    for warning in made["warnings"]:
        session.warn(f"{warning}; the breakpoint stays set")
    return 0


def _numbers(session: VerbSession, options: argparse.Namespace) -> list[int]:
    """Return the ids of the selected breakpoints. Raises UsageError."""
    if options.all == bool(options.ids):
        raise UsageError(f"break {options.action} requires ids of breakpoints or --all")
    if options.all:
        return [each["id"] for each in session.daemon.call("debug.break_list")]
    wrong = [word for word in options.ids if numbers.whole_number(word) is None]
    if wrong:
        raise UsageError(f'"{wrong[0]}" is not the id of a breakpoint: `debug break` lists them')
    return [int(word) for word in options.ids]


# -- changing the attempt -------------------------------------------------------------------------------------------


def _force_words(words: VerbParser) -> None:
    words.add_argument("node", metavar="NODE")
    words.add_argument("-y", "--yes", action="store_true", help="also if the pod does not fit the node")


@verb(
    "force",
    "Make the stopped attempt choose this node.",
    _force_words,
    whole="debug force",
    examples=("force node-a", "force node-b --yes"),
    completes="node",
)
def force(session: VerbSession, options: argparse.Namespace) -> int:
    _attach(session)
    try:
        answer = session.daemon.call("debug.force", node=options.node, yes=options.yes)
    except RpcError as refused:
        if isinstance(refused.data, dict) and refused.data.get("reasons"):
            raise RpcError(refused.code, f"{refused}; --yes forces it", refused.data) from refused
        raise
    session.write(f"{answer['pod']} goes to {answer['node']} when the attempt goes on\n")
    for reason in answer["reasons"]:
        session.warn(f"it does not fit: {reason}")
    return 0


def _node_words(words: VerbParser) -> None:
    words.add_argument("node", metavar="NODE")


@verb(
    "veto",
    "Exclude a node from the stopped attempt.",
    _node_words,
    whole="debug veto",
    examples=("veto node-a",),
    completes="node",
)
def veto(session: VerbSession, options: argparse.Namespace) -> int:
    answer = _control(session, "debug.veto", node=options.node)
    session.write(f"{answer['pod']} does not go to {answer['node']} in this attempt\n")
    return 0


def _score_words(words: VerbParser) -> None:
    words.add_argument("node", metavar="NODE")
    words.add_argument("plugin", metavar="PLUGIN")
    words.add_argument("score", type=int, metavar="VALUE", help="the normalized score, from 0 to 100")


@verb(
    "score",
    "Replace a plugin's score for a node in the stopped attempt.",
    _score_words,
    whole="debug score",
    examples=("score node-a ImageLocality 100",),
    completes="node",
)
def score(session: VerbSession, options: argparse.Namespace) -> int:
    answer = _control(session, "debug.score", node=options.node, plugin=options.plugin, score=options.score)
    session.write(f"{answer['plugin']} gives {answer['node']} {answer['score']} in this attempt\n")
    return 0


@verb("drop", "Abort the stopped attempt; the pod returns to the queue.", whole="debug drop", examples=("drop",))
def drop(session: VerbSession, options: argparse.Namespace) -> int:
    answer = _control(session, "debug.drop")
    session.write(f"{answer['pod']} goes back to the queue when the attempt goes on\n")
    return 0
