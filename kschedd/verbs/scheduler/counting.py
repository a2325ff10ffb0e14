"""spread: counts the pods for each value of a node label, such as the zone, the host name or the disk type."""

import argparse
from collections import Counter

from kschedd.api.schemas.kinds import lookup
from kschedd.api.text.similar import allowed_names
from kschedd.printing.terminal.tables import Table, render
from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    namespace_flags,
    namespace_of,
    output_flag,
    verb,
)
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import where

_POD = lookup("pod")


def _words(words: VerbParser) -> None:
    words.add_argument("label", metavar="LABEL", help="a label key of nodes, such as topology.kubernetes.io/zone")
    words.add_argument("-l", "--selector", metavar="LABELS", help="pods with these labels")
    namespace_flags(words, everywhere=True)
    output_flag(words, FORMS)


@verb(
    "spread",
    "Count pods by a label of their nodes, such as the zone.",
    _words,
    examples=("spread topology.kubernetes.io/zone -l app=web", "spread kubernetes.io/hostname -A"),
)
def spread(session: VerbSession, options: argparse.Namespace) -> int:
    """Print a row for each value of the label, including values whose nodes have no pods."""
    label = options.label
    namespace = namespace_of(session, options)
    call = session.daemon.call
    nodes = call("objects.list", kind="Node", metadata_only=True)["items"]
    value_of = {n["metadata"]["name"]: (n["metadata"].get("labels") or {}).get(label, "<none>") for n in nodes}
    if nodes and not any(label in (n["metadata"].get("labels") or {}) for n in nodes):
        keys = sorted({key for n in nodes for key in n["metadata"].get("labels") or {}})
        raise UsageError(f'no node has the label "{label}"{allowed_names(label, keys)}', "spread")
    found: Counter[str] = Counter({value: 0 for value in value_of.values()})
    pending = 0
    for pod in call("objects.list", kind="Pod", label_selector=options.selector, **where(_POD, namespace))["items"]:
        node = pod["spec"].get("nodeName")
        if node in value_of:
            found[value_of[node]] += 1
        else:
            pending += 1
    if write_answer(session, options.output, {"label": label, "pods": dict(sorted(found.items())), "pending": pending}):
        return 0
    rows = [(value, str(found[value])) for value in sorted(found)]
    if pending:
        rows.append(("(no node)", str(pending)))
    session.write(render(Table((label.rpartition("/")[2].upper(), "PODS"), tuple(rows)), session.style))
    return 0
