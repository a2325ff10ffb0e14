"""load and save: dumps of a cluster."""

import argparse
from collections.abc import Iterator
from typing import Any, Final

from kschedd.dumps.redaction import redacted
from kschedd.dumps.saving import DumpError, dump_objects, json_chunks, write_dump
from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import UsageError, VerbParser, output_flag, verb
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.session import VerbSession

_KINDS: Final = (
    "namespaces,nodes,pods,replicasets,deployments,statefulsets,daemonsets,controllerrevisions,jobs,cronjobs,"
    "replicationcontrollers,poddisruptionbudgets,priorityclasses,runtimeclasses,services,persistentvolumes,persistentvolumeclaims,"
    "storageclasses,csinodes,csidrivers,csistoragecapacities,volumeattachments,resourcequotas,limitranges,serviceaccounts"
)
_DEVICES: Final = "resourceslices,resourceclaims,resourceclaimtemplates,deviceclasses"
HOW: Final = f"""\
All that scheduling depends on, in one file:

  kubectl get -A -o json {_KINDS} | gzip > cluster.json.gz

Where devices are claimed (kubectl api-resources shows resourceslices), these as well:

  kubectl get -A -o json {_DEVICES} | gzip > devices.json.gz

Then: kschedd run --from cluster.json.gz, or kschedd load cluster.json.gz on a daemon that runs. Secrets and ConfigMaps
are not needed. The scheduler's configuration goes beside it: kschedd run --config FILE.
"""
_NOTHING_IN_IT: Final = 2
_NOT_SAVED: Final = frozenset(("Event", "Lease", "ComponentStatus"))


def _load_words(words: VerbParser) -> None:
    words.add_argument("paths", nargs="*", metavar="PATH", type=path_text, help="dump files and folders")
    words.add_argument("--how", action="store_true", help="print the kubectl command that makes a dump")
    words.add_argument("--keep-secrets", action="store_true", help="keep the data of Secrets and ConfigMaps")
    words.add_argument(
        "--as-it-is", action="store_true", help="do not add missing objects to which other objects refer"
    )
    words.add_argument(
        "--scheduler",
        action="append",
        default=[],
        metavar="NAME=PROFILE",
        help="schedule pods whose schedulerName is NAME with this profile",
    )
    output_flag(words, FORMS)


@verb(
    "load",
    "Load a dump of a cluster.",
    _load_words,
    examples=("load cluster.json.gz", "load must-gather.local.5281/", "load --how"),
)
def load(session: VerbSession, options: argparse.Namespace) -> int:
    if options.how:
        session.write(HOW)
        return 0
    if not options.paths:
        raise UsageError("a dump file or folder is required; `load --how` shows how to make one")
    renamed = dict(_renamed(text) for text in options.scheduler)
    answer = session.daemon.call(
        "cluster.load",
        paths=[str((session.folder / path).absolute()) for path in options.paths],
        keep_secrets=options.keep_secrets,
        complete=not options.as_it_is,
        schedulers=renamed,
    )
    if not write_answer(session, options.output, answer):
        _report(session, answer)
    if answer["errors"]:
        return 1
    if not answer["loaded"] and not answer["applied"]:
        session.error("no Kubernetes objects found")
        return _NOTHING_IN_IT
    return 0


def _renamed(text: str) -> tuple[str, str]:
    name, equals, profile = text.partition("=")
    if not name or not equals or not profile:
        raise UsageError(f"--scheduler {text}: NAME=PROFILE is expected, such as volcano=default-scheduler")
    return name, profile


def _report(session: VerbSession, answer: Any) -> None:
    for text in answer["assumptions"]:
        session.note(text)
    if stayed := answer["in_the_way"]:
        more = f" and {len(stayed) - 3:,} more" if len(stayed) > 3 else ""
        session.warn(f"objects of these names already exist and were kept: {', '.join(stayed[:3])}{more}")
    for text in answer["errors"]:
        session.error(text)
    session.write(f"loaded: {answer['loaded'] or 'nothing'}\n")
    if answer["applied"]:
        objects = "1 object" if answer["applied"] == 1 else f"{answer['applied']:,} objects"
        session.write(f"applied: {objects} without a uid\n")


def _save_words(words: VerbParser) -> None:
    words.add_argument(
        "path",
        metavar="PATH",
        type=path_text,
        help="a file name ending in .json or .yaml, optionally followed by .gz; - for stdout",
    )
    words.add_argument(
        "--redact",
        action="store_true",
        help="replace all names that are not part of Kubernetes, consistently; scheduling decisions stay the same",
    )
    words.add_argument("--keep-secrets", action="store_true", help="keep the data of Secrets and ConfigMaps")
    words.add_argument("--force", action="store_true", help="overwrite an existing file")


@verb(
    "save",
    "Save the cluster as a dump that `load` and kubectl can read.",
    _save_words,
    examples=("save cluster.json.gz", "save case.yaml --redact"),
)
def save(session: VerbSession, options: argparse.Namespace) -> int:
    objects = dump_objects(_all_objects(session), keep_secrets=options.keep_secrets)
    if options.redact:
        made, report = redacted(objects)
        for sentence in report:
            session.warn(sentence)
        objects = iter(made)
    if options.path == "-":
        for chunk in json_chunks(objects):
            session.write(chunk)
        return 0
    try:
        count = write_dump((session.folder / options.path).absolute(), objects, force=options.force)
    except DumpError as fault:
        session.error(str(fault))
        return 1
    session.write(f"{options.path}: {count:,} objects saved{', redacted' if options.redact else ''}\n")
    return 0


def _all_objects(session: VerbSession) -> Iterator[Any]:
    kinds = [kind["name"] for kind in session.daemon.call("objects.kinds")]
    for kind in sorted(kinds, key=lambda name: (name != "Namespace", name != "Node", name)):
        if kind not in _NOT_SAVED:
            yield from session.daemon.call("objects.list", kind=kind, namespace=None)["items"]
