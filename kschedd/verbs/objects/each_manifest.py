"""One request for each object of the files of -f: what create and replace have in common."""

import argparse
from collections.abc import Callable
from typing import Any

from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import namespace_of
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.objects.changing import dry_run_text, write_change
from kschedd.verbs.objects.manifests import no_mapping, read_objects


def each_manifest(
    session: VerbSession, options: argparse.Namespace, done: str, request: Callable[[dict[str, Any]], Any]
) -> int:
    """Perform `request` with each object and print what became of it; an error of one leaves the others alone.

    `done` is the word for success. Returns the exit status: 1 where anything was refused.
    """
    objects, failed = read_objects(session, options.filename, namespace_of(session, options) or "default")
    answers = []
    for place, raw in objects:
        try:
            answer = request(raw)
        except RpcError as error:
            why = str(error)
            if error.code == "no_match":
                meta = raw.get("metadata") or {}
                why = no_mapping(place.rpartition(":")[0], meta.get("name"), meta.get("namespace"), why)
            session.error(f"{place}: {why}")
            failed += 1
            continue
        answers.append(answer)
        for warning in answer.get("warnings") or ():
            session.warn(f"{place}: {warning}")
        write_change(session, options, answer["object"], f"{done}{dry_run_text(options)}")
    session.warn_unsupported(answers)
    return 1 if failed else 0
