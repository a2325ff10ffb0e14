"""`deschedule`: run one cycle of the descheduler."""

import argparse
from typing import Any, Final

from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import UsageError, VerbParser, output_flag, verb
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.objects.manifests import file_flag, sources_of

_REFUSED, _FAILED = 1, 2
_MEANING: Final = {
    "PDB": "its PodDisruptionBudget allows no disruption",
    "MultiplePDBs": "several PodDisruptionBudgets select it",
    "not found": "the strategy chose it twice",
    "node limit": "maxNoOfPodsToEvictPerNode is reached",
    "namespace limit": "maxNoOfPodsToEvictPerNamespace is reached",
    "total limit": "maxNoOfPodsToEvictTotal is reached",
}
_BY_POLICY: Final = frozenset(("not found", "node limit", "namespace limit", "total limit"))  # as the user wants


def _words(words: VerbParser) -> None:
    file_flag(words, needed=True)
    words.add_argument("--dry-run", action="store_true", help="only list the pods that would be evicted")
    output_flag(words, FORMS)


@verb(
    "deschedule",
    "Evict the pods that a descheduler policy selects, once. `plan deschedule -f FILE` shows where the pods would be "
    "placed again. Exit status: 0 evicted as far as the policy allows, 1 some evictions are refused.",
    _words,
    examples=("deschedule -f policy.yaml", "deschedule -f policy.yaml --dry-run"),
    failed=_FAILED,
)
def deschedule(session: VerbSession, options: argparse.Namespace) -> int:
    sources, failed = sources_of(session, options.filename)
    if failed:
        return _FAILED
    if len(sources) != 1:
        raise UsageError("-f POLICY.yaml is required: one file with a DeschedulerPolicy", "deschedule")
    found = session.daemon.call(
        "descheduler.run", policy=sources[0].text, source=sources[0].name, dry_run=options.dry_run
    )
    if not write_answer(session, options.output, found):
        session.write(_text(found, "would be evicted" if options.dry_run else "evicted"))
        for each in found["refused"]:
            why = _MEANING.get(each["why"], each["why"])
            session.warn(f"pod/{_named(each)} not evicted from {each['node']} ({_by(each)}): {why}")
    return 0 if _BY_POLICY.issuperset(each["why"] for each in found["refused"]) else _REFUSED


def _text(found: dict[str, Any], done: str) -> str:
    lines = [f"pod/{_named(each)} {done} from {each['node']} ({_by(each)})" for each in found["evicted"]]
    if found["nodes"] < 2:
        lines.append(
            f"nothing is evicted: the descheduler needs two ready nodes, and the policy selects {found['nodes']}"
        )
    elif not found["evicted"] and not found["refused"]:
        lines.append("the policy selects no pod")
    return "".join(f"{line}\n" for line in lines)


def _named(each: dict[str, Any]) -> str:
    return f"{each['name']} -n {each['namespace']}"


def _by(each: dict[str, Any]) -> str:
    return f"{each['strategy']} of profile {each['profile']}" if each["profile"] else str(each["strategy"])
