"""replace: replaces objects by manifests; with --force, objects are deleted and created again."""

import argparse
from collections.abc import Mapping
from typing import Any

from kschedd.api.schemas.kinds import kind_of
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    dry_run_flag,
    namespace_flags,
    namespace_of,
    output_flag,
    output_of,
    validate_flag,
    validation_of,
    verb,
)
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import where
from kschedd.verbs.objects.changing import FORMS
from kschedd.verbs.objects.creating import each_manifest
from kschedd.verbs.objects.manifests import file_flag
from kschedd.verbs.objects.waiting import Patience, find_object, seconds_to_wait, timed_out, wait_until

_LONGEST_S = 7 * 86400.0


def _words(words: VerbParser) -> None:
    file_flag(words, needed=True)
    namespace_flags(words)
    words.add_argument("--force", action="store_true", help="delete the objects immediately, and create them again")
    words.add_argument(
        "--grace-period", type=int, metavar="SECONDS", help="seconds for pods to terminate, with --force (0)"
    )
    words.add_argument(
        "--timeout", default="0s", metavar="TIME", help="time limit of --force for the deletion of an object"
    )
    dry_run_flag(words)
    validate_flag(words)
    output_flag(words, FORMS)


@verb(
    "replace",
    "Replace objects with those of manifests.",
    _words,
    examples=("replace -f pod.yaml", "replace --force -f pod.yaml"),
)
def replace(session: VerbSession, options: argparse.Namespace) -> int:
    output_of(options.output, FORMS)
    if options.grace_period is not None and not options.force:
        raise UsageError("--grace-period must have --force specified")
    if options.force and options.dry_run != "none":
        raise UsageError("--dry-run can not be used when --force is set")
    timeout_s = seconds_to_wait(options.timeout, zero=_LONGEST_S)
    return each_manifest(session, options, "replaced", lambda raw: _replace(session, options, raw, timeout_s))


def _replace(session: VerbSession, options: argparse.Namespace, raw: Mapping[str, Any], timeout_s: float) -> Any:
    if not options.force:
        return session.daemon.call(
            "objects.replace", manifest=raw, field_validation=validation_of(options), dry_run=options.dry_run != "none"
        )
    _delete(session, options, raw, Patience(session, timeout_s))
    meta = raw.get("metadata") or {}
    fresh = {name: value for name, value in meta.items() if name not in ("resourceVersion", "uid")}
    return session.daemon.call(
        "objects.create",
        manifest={**raw, "metadata": fresh},
        namespace=namespace_of(session, options) or "default",
        field_validation=validation_of(options),
    )


def _delete(session: VerbSession, options: argparse.Namespace, raw: Mapping[str, Any], patience: Patience) -> None:
    """Delete the object with this name, and wait until it is gone. Raises RpcError."""
    kind, meta = kind_of(raw), raw["metadata"]
    name, namespace = str(meta.get("name", "")), meta.get("namespace")
    present = find_object(session, kind, name, namespace)
    if present is None:
        return
    session.daemon.call(
        "objects.delete",
        kind=kind.name,
        name=name,
        grace_period_s=options.grace_period or 0,
        **where(kind, namespace),
    )
    if output_of(options.output, FORMS).form == "table":
        session.write(f'{kind.resource} "{name}" deleted\n')
    uid = str(present["metadata"].get("uid", ""))
    if not wait_until(session, kind, name, namespace, lambda found: found is None, patience, uid=uid):
        raise RpcError("timeout", timed_out(kind, name))
