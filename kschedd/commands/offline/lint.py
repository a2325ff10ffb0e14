"""`kschedd lint`: finds fields that a Kubernetes release ignores, rejects or treats differently from the next release.

Exit status: 0 no errors and warnings, 1 some, 2 an input is unusable.
"""

import argparse
import sys
from typing import Any, Final

from kschedd.commands.notices import note, report_error, show
from kschedd.verbs.command_line.parsing import path_text

CLEAN, FOUND, BAD_INPUT = 0, 1, 2
_FORMS: Final = ("text", "json", "sarif", "markdown")
_LEVELS: Final = ("error", "warning", "note")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "lint",
        help="find fields that a Kubernetes release ignores or rejects in manifests",
        description="Find fields that a Kubernetes release ignores or rejects, objects that contradict themselves, and "
        "what an upgrade changes: in manifests, scheduler configurations, scripts and dumps. If the objects include "
        "nodes, pods are compared with these. Exit status: 0 no errors and warnings, 1 some, 2 an input is unusable.",
    )
    parser.add_argument(
        "-f",
        "--filename",
        type=path_text,
        action="append",
        default=[],
        metavar="PATH",
        help="a file, a folder (read recursively), or - for standard input; may be repeated",
    )
    parser.add_argument(
        "--from",
        dest="origin",
        type=path_text,
        action="append",
        default=[],
        metavar="PATH",
        help="a dump of a cluster; with -f, its objects are only used for lookups",
    )
    parser.add_argument(
        "--kube-version",
        type=_release,
        metavar="VERSION",
        help="release of the cluster, 1.29 to 1.38 (default: that of the dump's nodes, or 1.37)",
    )
    parser.add_argument(
        "--upgrade-to",
        type=_release,
        metavar="VERSION",
        help="also find changes that an upgrade to this release causes",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="CODE,...",
        help="codes to ignore; in a file, `# kschedd: ignore=CODE`",
    )
    parser.add_argument(
        "--kept",
        action="store_true",
        help="also look at archives, older versions, files for old clusters, tests, builds and dependencies",
    )
    parser.add_argument(
        "--level", choices=_LEVELS, default="note", help="show findings of this level and above (default note)"
    )
    parser.add_argument("--rules", action="store_true", help="list the rules")
    parser.add_argument("-o", "--output", choices=_FORMS, default="text")
    parser.set_defaults(run=main)


def _release(text: str) -> Any:
    from kschedd.lint.linting import LintReleaseError, release_of

    try:
        return release_of(text)
    except LintReleaseError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


def main(options: argparse.Namespace) -> int:
    import attrs

    from kschedd.lint import reports
    from kschedd.lint.linting import lint, unknown_codes
    from kschedd.lint.reading import read_dump_objects, read_files
    from kschedd.printing.terminal.safe import exact, safe

    def refuse(text: str) -> int:
        report_error(text)
        return BAD_INPUT

    if options.rules:
        sys.stdout.write(reports.rules_as_text())
        return CLEAN
    if not options.filename and not options.origin:
        return refuse("nothing to look at: pass files with -f, or a dump with --from")
    ignored = [code for text in options.ignore for code in text.split(",") if code]
    if wrong := unknown_codes(ignored):
        return refuse(f"--ignore: there is no rule {wrong[0]!r}; `kschedd lint --rules` lists them")
    dump = read_dump_objects(options.origin, sys.stdin.buffer)
    release = options.kube_version or _release_of_dump(dump.objects)
    files = read_files(options.filename, sys.stdin.buffer, None if options.kept else release)
    for text in (*files.errors, *dump.errors):
        report_error(text)
    if files.templates:
        count = f"{len(files.templates):,} template{'' if len(files.templates) == 1 else 's'}"
        how = "render a chart first: helm template CHART | kschedd lint -f -"
        note(f"skipped {count}, such as {files.templates[0]} ({how})")
    if files.passed_over:
        first, *more = files.passed_over.values()
        also = f", and parts of {len(more):,} more {'file' if len(more) == 1 else 'files'}" if more else ""
        note(f"skipped, because it is not a Kubernetes object: {first}{also}")
    if not files.objects and not dump.objects:
        return refuse("no Kubernetes objects found") if not files.errors and not dump.errors else BAD_INPUT
    if options.origin and not dump.objects:
        return BAD_INPUT if dump.errors else refuse(f"{', '.join(options.origin)}: no Kubernetes objects found")
    judged, beside = (files.objects, dump.objects) if options.filename else (dump.objects, [])
    result = lint(
        judged,
        release,
        target=options.upgrade_to,
        beside=beside,
        complete=bool(options.origin),
        ignored=ignored,
        all_files=options.kept,
    )
    result = attrs.evolve(result, kept={**files.kept, **result.kept}).at_least(options.level)
    for text in result.faults:
        report_error(text)
    forms = {"json": reports.as_json, "sarif": reports.as_sarif, "markdown": reports.as_markdown}
    text = forms.get(options.output, reports.as_text)(result)
    if options.output == "text":
        show(text)
    else:
        sys.stdout.write(safe(text) if options.output == "markdown" else exact(text))
    if files.errors or result.faults:
        return BAD_INPUT
    return CLEAN if result.passes else FOUND


def _release_of_dump(objects: Any) -> Any:
    """Return the release of the dump's nodes.

    Return the default release if the nodes have none, or have a release that lint does not support.
    """
    from kschedd.config.versions.kube_versions import DEFAULT
    from kschedd.lint.linting import LintReleaseError, release_of
    from kschedd.lint.reading import release_of_nodes

    default = release_of(DEFAULT.name)
    minor = release_of_nodes(objects)
    if minor is None or minor == default.minor:
        return default
    try:
        return release_of(f"1.{minor}")
    except LintReleaseError:
        return default
