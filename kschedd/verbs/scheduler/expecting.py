"""expect: checks an assertion about a cluster, for scenarios and scripts. `kschedd test` reports the results.

The scenario runner calls `check`; the verb also prints the result. The session's sleep advances the time: in one step
for `after`, and in short steps for `within`.
"""

import argparse
from collections.abc import Sequence
from typing import Any

import attrs

from kschedd.api.schemas.kinds import lookup
from kschedd.printing import documents
from kschedd.printing.templates.jsonpath import JsonPathError, compile_path, values_at
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    namespace_flags,
    namespace_of,
    output_flag,
    output_of,
    verb,
)
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import kind_of_word, where
from kschedd.verbs.scheduler.expectations import Finding, expectation
from kschedd.verbs.scheduler.pod_states import Raw

_FORMS = ("table", "json", "yaml")
_STEP_S = 1.0


@attrs.frozen(eq=False)
class DaemonFacts:
    """An implementation of `ClusterFacts` that calls the daemon."""

    _session: VerbSession
    _namespace: str | None

    def pods(self, selector: str | None = None) -> Sequence[Raw]:
        of = where(lookup("pod"), self._namespace)
        found: Sequence[Raw] = self._session.daemon.call("objects.list", kind="Pod", label_selector=selector, **of)[
            "items"
        ]
        return found

    def nodes(self) -> Sequence[Raw]:
        found: Sequence[Raw] = self._session.daemon.call("objects.list", kind="Node", metadata_only=True)["items"]
        return found

    def events(self) -> Sequence[Raw]:
        found = self._session.daemon.call("events.list")["events"]
        return [e for e in found if self._namespace is None or e.get("namespace") in ("", None, self._namespace)]

    def value(self, kind: str, name: str, path: str) -> str | None:
        known = kind_of_word(self._session, kind)
        try:
            compiled = compile_path(path)
        except JsonPathError as fault:
            raise UsageError(str(fault), "expect") from fault
        try:
            raw = self._session.daemon.call(
                "objects.get", kind=known.name, name=name, **where(known, self._namespace or "default")
            )["object"]
        except RpcError as error:
            if error.code == "not_found":
                return None
            raise
        return " ".join(str(v).lower() if isinstance(v, bool) else str(v) for v in values_at(compiled, raw))


def _words(words: VerbParser) -> None:
    words.add_argument(
        "what", nargs="*", metavar="ASSERTION", help="an assertion, such as: pod web-0 on zone b; nothing pending"
    )
    words.add_argument("-l", "--selector", metavar="LABELS", help="pods with these labels")
    namespace_flags(words, everywhere=True)
    output_flag(words, _FORMS)


def check(session: VerbSession, options: argparse.Namespace) -> Finding:
    """Evaluate an expectation at its time. Raises UsageError."""
    try:
        wanted = expectation(options.what, options.selector)
    except UsageError as wrong:
        wrong.verb = wrong.verb or "expect"
        raise
    facts = DaemonFacts(session, namespace_of(session, options))
    if wanted.after_s:
        session.sleep(wanted.after_s)
    finding, left_s = wanted.assertion.check(facts), wanted.within_s
    while not finding.met and left_s > 0:
        session.sleep(min(_STEP_S, left_s))
        left_s -= _STEP_S
        finding = wanted.assertion.check(facts)
    if finding.met or not finding.instead:
        return finding
    space = f" -n {options.namespace}" if options.namespace else ""
    space += " -A" if options.all_namespaces else ""
    return attrs.evolve(finding, instead=f"expect {finding.instead}{space}{f' {wanted.time}' if wanted.time else ''}")


@verb(
    "expect",
    "Assert something about the cluster. Exits 1 and prints the actual state if the assertion fails.",
    _words,
    examples=(
        "expect pod web-0 on zone b",
        "expect pod big pending because 'Insufficient cpu'",
        "expect nothing pending after 10m",
        "expect 3 pods running -l app=web within 1m",
        "expect max skew at most 1 over zone for app=web",
        "expect event Preempted for pod/little",
        "expect deployment/web {.status.readyReplicas} = 3",
    ),
    failed=2,
)
def expect(session: VerbSession, options: argparse.Namespace) -> int:
    form = output_of(options.output, _FORMS).form
    finding = check(session, options)
    if form != "table":
        answer: dict[str, Any] = {"expected": " ".join(options.what), **attrs.asdict(finding)}
        session.write(documents.as_json(answer) if form == "json" else documents.as_yaml(answer))
    elif not finding.met:
        session.write_error(unmet_text(" ".join(options.what), finding))
    return 0 if finding.met else 1


def unmet_text(expected: str, finding: Finding) -> str:
    """Return lines with the expectation, the actual state and the reason."""
    why = f"why:      {finding.why}\n" if finding.why else ""
    return f"expected: {expected}\nfound:    {finding.found}\n{why}"
