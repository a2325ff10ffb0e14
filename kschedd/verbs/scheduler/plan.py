"""plan: dry run of a verb on a fork; shows the node of each pod, or the reason why the pod has none.

`plan` creates a fork, runs the verb in it, advances its time until no work is pending, and prints the difference.
`plan` then discards the fork, unless --keep gives it a name.

Exit status: 0 if the verb succeeds and each affected pod has a node; 1 if the verb fails or pods have no node; 2 after
an error. With --detailed-exitcode, 3 means that something would change and everything fits.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import attrs

from kschedd.api.text.durations import brief_duration
from kschedd.printing.reports.forks import diff_text, is_different, without_place
from kschedd.printing.reports.pools import pools_text
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import flowing
from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import UsageError, Verb, VerbParser, output_flag, whole_number
from kschedd.verbs.command_line.parsing import duration
from kschedd.verbs.command_line.paused import note_if_paused
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.scheduler.capacity import alternatives_text
from kschedd.verbs.scheduler.expected_places import compared_with_scheduler
from kschedd.verbs.scheduler.forks import LONGEST_WAIT_S, OVER_FORKS, Run, session_in

NOTHING, DOES_NOT_FIT, FAILED, CHANGES = 0, 1, 2, 3
MOST_PODS: Final = 100
_OF_ANOTHER_SCHEDULER: Final = "SchedulerNameUnknown"  # code of a cause
_MOST_EXAMINED: Final = 20  # pods without a place
_MOST_NAMED: Final = 5  # maximum number of named pods that the next run of the descheduler would evict
_MOST_WORKLOADS: Final = 3  # maximum number of workloads for which other sizes are tried
_WITHIN_S: Final = 3600.0


#: verbs that follow the decision of an autoscaler, which `plan` compares with the scheduler's placements
OF_POOLS: Final = frozenset(("scale-up", "consolidate", "remove-node"))
#: verbs that change nothing, so that a plan of them has no result
READING: Final = frozenset(
    (
        *("get", "describe", "explain", "events", "logs", "top", "diff", "wait", "api-resources", "can-i", "auth"),
        *("queue", "decisions", "waiting", "spread", "expect", "status", "info", "clients", "weights", "metrics"),
        *("capacity", "nodes-needed", "compare", "save", "report", "watch", "where", "costs", "plugins"),
    )
)
_OWN_FLAGS = ("--within", "--limit", "--keep", "--detailed-exitcode")


def _words(words: VerbParser) -> None:
    words.add_argument(
        "--within", type=duration, default=_WITHIN_S, metavar="DURATION", help="limit of virtual time (1h)"
    )
    words.add_argument("--limit", type=whole_number, default=MOST_PODS, metavar="N", help="print at most N pods (100)")
    words.add_argument("--keep", metavar="FORK", help="keep the fork, under this name")
    words.add_argument(
        "--detailed-exitcode", action="store_true", help="exit with 3 if something would change and everything fits"
    )
    words.add_argument(
        "--from",
        dest="origin",
        default="",
        metavar="DUMP",
        help="use the cluster in a dump, without a daemon (command line only)",
    )
    output_flag(words, FORMS)
    words.add_argument("words", nargs=argparse.REMAINDER, metavar="VERB ...")


def plan(run: Run) -> Callable[[VerbSession, argparse.Namespace], int]:
    def do(session: VerbSession, options: argparse.Namespace) -> int:
        words = list(options.words)
        if options.origin:
            raise UsageError("--from is only available on the command line: kschedd plan --from DUMP ...", "plan")
        if not words:
            raise UsageError("plan requires a command, such as: plan drain node-a", "plan")
        if words[0] in OVER_FORKS:
            raise UsageError(f"{words[0]} cannot be planned: it changes no objects of the cluster", "plan")
        if words[0] in READING:
            raise UsageError(
                f"{words[0]} cannot be planned: it changes nothing. To read the result of a plan: "
                f"plan --keep NAME COMMAND, then fork run NAME {words[0]} ...",
                "plan",
            )
        if " " in words[0]:
            raise UsageError(
                f'"{words[0]}": the words of one command are expected, without quotes. Several commands: '
                "fork create NAME, fork run NAME COMMAND, fork diff NAME",
                "plan",
            )
        own = words[: words.index("--")] if "--" in words else words
        if any(word in ("-o", "--output") or word.startswith(("-o=", "--output=")) for word in own):
            raise UsageError(f"flags of plan go before the command: plan -o FORM {words[0]} ...", "plan")
        fork = session.daemon.call("fork.create", name=options.keep, what_if=True)["name"]
        try:
            return _planned(run, session, options, fork, words)
        finally:
            if options.keep is None:
                session.daemon.call("fork.discard", fork=fork)

    return do


def _planned(run: Run, session: VerbSession, options: argparse.Namespace, fork: str, words: list[str]) -> int:
    within_s: float = options.within
    lines: list[str] = []
    complaints: list[str] = []
    # The next run of `deschedule` reads the same standard input.
    waits_s = within_s if words[0] in OF_POOLS else LONGEST_WAIT_S
    inner = attrs.evolve(session_in(session, fork, waits_s=waits_s), read_input=cache(session.read_input))
    plain = TerminalStyle()  # without colors and line breaks, so that errors can be recognized by their first word
    told = [*words, "-o", "json"] if words[0] in OF_POOLS else words
    status = run(attrs.evolve(inner, write=lines.append, write_error=complaints.append, style=plain), told)
    if status == 2:
        session.write_error("".join(complaints))
        misplaced = [word for word in words if word.partition("=")[0] in _OWN_FLAGS]
        if misplaced:
            session.write_error(f"Flags of plan go before the command: plan {misplaced[0]} {words[0]} ...\n")
        return status
    ended = session.daemon.call("fork.advance", fork=fork, seconds=None, limit_s=within_s)
    diff: dict[str, Any] = session.daemon.call("fork.diff", fork=fork)
    said = list(dict.fromkeys("".join(complaints).splitlines()))
    fails = [line for line in said if line.startswith("error")]
    done = is_different(diff) or not status  # if the verb failed without a change, only its error is printed
    again = _next_run(run, inner, words)
    pools = json.loads("".join(lines)) if words[0] in OF_POOLS and lines else None
    done = done or pools is not None
    if pools is not None and "launches" in pools:
        pools |= compared_with_scheduler(inner.daemon, pools, diff)
    largest = list(_largest(inner, diff))
    at_rest, others = ended["at_rest"], diff["pending"] - len(without_place(diff))
    result = {"complete": at_rest and not fails, "pending": len(without_place(diff)), "others_pending": others}
    answer = {**diff, "errors": fails, "at_rest": at_rest, "largest": largest, "result": result}
    if again is not None:
        answer["next_run"] = again
    if pools is not None:
        answer["pools"] = pools
    if not write_answer(session, options.output, answer) and done:
        session.write("" if pools is None else pools_text(pools, session.style))
        session.write(diff_text(diff, session.style, options.limit))
        session.write(flowing("".join(map(_largest_text, largest)), session.style))
        session.write(flowing(_result_text(result, at_rest=at_rest, within=brief_duration(within_s)), session.style))
        session.write(flowing(_of_configuration(words, diff), session.style))
        session.write(flowing("" if again is None else _next_run_text(again), session.style))
        note_if_paused(session)
    if done:
        session.write_error("".join(f"{line}\n" for line in said if line.startswith("Warning: ")))
    for line in fails:
        if line.startswith("error: "):
            session.error(line.removeprefix("error: "))
        else:  # kubectl's "error when evicting pods ..."
            session.hint(line)
    if not done:
        return status
    if status or without_place(diff):
        return DOES_NOT_FIT
    return CHANGES if options.detailed_exitcode and is_different(diff) else NOTHING


def _next_run(run: Run, inner: VerbSession, words: list[str]) -> list[dict[str, Any]] | None:
    """Return the pods that the next `deschedule` in the fork would evict; None if the command is another one."""
    if words[0] != "deschedule" or "--dry-run" in words:
        return None
    lines: list[str] = []
    run(attrs.evolve(inner, write=lines.append), [*words, "--dry-run", "-o", "json"])
    evicted: list[dict[str, Any]] = json.loads("".join(lines))["evicted"]
    return evicted


def _next_run_text(again: list[dict[str, Any]]) -> str:
    """Return a sentence with the pods that the next run of a periodic descheduler would evict again."""
    if not again:
        return "The next run with this policy would evict no pod.\n"
    named = [f"{each['namespace']}/{each['name']} ({each['strategy']})" for each in again[:_MOST_NAMED]]
    more = f" and {len(again) - _MOST_NAMED} more" if len(again) > _MOST_NAMED else ""
    pods = "1 pod" if len(again) == 1 else f"{len(again)} pods"
    return f"The next run with this policy would evict {pods} again: {', '.join(named)}{more}.\n"


def _of_configuration(words: list[str], diff: dict[str, Any]) -> str:
    """Return the command that shows the effect of a changed configuration on all pods, or ""."""
    if not diff["config"]:
        return ""
    if words[:2] == ["set", "weight"] and len(words) == 4:
        command = f"compare --weight {words[2]}={words[3]}"
    else:
        command = "compare --config FILE"  # `config convert` writes FILE
    moved = f"`kschedd {command}` shows which of them a new attempt would place elsewhere.\n"
    return f"Scheduled pods stay on their nodes; {moved}"


def _result_text(result: dict[str, Any], *, at_rest: bool, within: str) -> str:
    """Return a line about the remaining work, and whether the placements are final."""
    pending = result["pending"]
    left = f"{pending} {'pod stays' if pending == 1 else 'pods stay'} pending" if pending else "no pod stays pending"
    if others := result["others_pending"]:  # they are not in the plan, because it does not change them
        as_before = "1 other pod is" if others == 1 else f"{others} other pods are"
        left += f" because of the change ({as_before} pending as before)"
    if not at_rest:
        return f"incomplete: {left} after {within} of virtual time, but work goes on; use --within to run longer\n"
    if not result["complete"]:
        return f"incomplete: {left}, but the command failed in part\n"
    return f"complete: {left}, and no work is left\n"


def _largest(inner: VerbSession, diff: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield, for the first workloads with pods that do not fit, how many pods of other sizes would fit."""
    known: set[tuple[str, str, str]] = set()
    for pod in without_place(diff)[:_MOST_EXAMINED]:
        name = pod["successor"] or pod["name"]
        found = inner.daemon.call("causes.explain", kind="Pod", name=name, namespace=pod["namespace"], remedies=False)
        workload = found["workload"]
        key = (workload["kind"], workload["namespace"], workload["name"])
        if key in known or workload["kind"] == "Pod" or len(known) == _MOST_WORKLOADS:
            continue
        known.add(key)
        if found["cause"]["code"] == _OF_ANOTHER_SCHEDULER:
            fits = {"fits": 0, "alternatives": []}
        else:
            (fits,) = inner.daemon.call("capacity.pods", workload=workload, alternatives=True)
        yield {"workload": workload, "wanted": found["wanted"], "cause": found["cause"], **fits}


def _largest_text(each: dict[str, Any]) -> str:
    """Return the lines about a workload: the cause, and the sizes of pods of which more would fit."""
    workload = each["workload"]
    named = f"{workload['kind'].lower()}/{workload['name']}"
    helps = any(other["fits"] > each["fits"] for other in each["alternatives"] or ())
    others = alternatives_text(each) if helps else ""
    text = f"{named}: {each['fits']} of {each['wanted']} pods fit; {each['cause']['message']}\n"
    return text + (f"  pods that fit, by the size of their request: {others}\n" if others else "")


def verbs(run: Run) -> tuple[Verb, ...]:
    return (
        Verb(
            "plan",
            "Dry-run a command on a copy of the cluster, and show the placements. Exit status: 0 all fits, 1 not.",
            plan(run),
            _words,
            examples=(
                "plan drain node-a --ignore-daemonsets",
                "plan delete node node-a node-b",
                "plan scale deployment web --replicas 30",
                "plan apply -f change.yaml",
                "plan deschedule -f policy.yaml",
                "plan scale-up --pools pools.yaml -f app.yaml",
                "plan --keep what-if set weight NodeResourcesFit 5",
            ),
            completes="verb",
            failed=FAILED,
        ),
    )
