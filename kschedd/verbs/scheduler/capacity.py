"""capacity, nodes-needed: how many more pods fit, and how many nodes it takes for pods to fit. Both change nothing."""

import argparse
from collections.abc import Sequence
from typing import Any, Final

from kschedd.errors import KscheddError
from kschedd.printing.reports import upgrade
from kschedd.printing.reports.comparison import comparison_text
from kschedd.printing.terminal.tables import Table, render
from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    namespace_flags,
    namespace_of,
    output_flag,
    output_of,
    verb,
    whole_number,
)
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.workload_pods import workload_named
from kschedd.verbs.objects.manifests import file_flag, sources_of

FITS_NOT: Final = 3


def _manifests(session: VerbSession, files: Sequence[str]) -> list[dict[str, Any]]:
    """The objects of the files. Raises UsageError at the first fault."""
    from kschedd.api.manifests import read_text  # YAML takes long to import, and most verbs need none

    sources, failed = sources_of(session, files)
    if failed:
        raise UsageError("a file cannot be read")
    found: list[dict[str, Any]] = []
    for source in sources:
        reading = read_text(source.text, source.name)
        for fault in reading.errors:
            raise UsageError(str(fault))
        found += [dict(manifest.raw) for manifest in reading.manifests]
    return found


def _capacity_words(words: VerbParser) -> None:
    words.add_argument("workload", nargs="?", default="", metavar="KIND/NAME", help="a workload that is there")
    namespace_flags(words)
    file_flag(words, needed=False)
    words.add_argument("--alternatives", action="store_true", help="also: how many of half the size, of double ...")
    words.add_argument("--together", action="store_true", help="how many sets fit, with one of each spec in each")
    _shape_flag(words, "also: how many more with one more node of this kind")
    words.add_argument("--limit", type=whole_number, default=10_000, metavar="N", help="count no further (10000)")
    output_flag(words, FORMS)


def _shape_flag(words: VerbParser, purpose: str) -> None:
    words.add_argument("--shape", action="append", default=[], metavar="NODE.yaml[=PRICE]", help=purpose)


@verb(
    "capacity",
    "How many more pods of each spec, or of several together, fit; and with one more node of a kind.",
    _capacity_words,
    examples=(
        "capacity -f pod.yaml",
        "capacity deployment/web",
        "capacity -f job.yaml --alternatives",
        "capacity -f small.yaml -f large.yaml",
        "capacity -f web.yaml -f cache.yaml --together",
        "capacity -f web.yaml --shape small.yaml=1 --shape large.yaml=3.5",
    ),
)
def capacity(session: VerbSession, options: argparse.Namespace) -> int:
    """One row for each spec, or for all together; the status is 3 where one does not fit once."""
    shapes = [_shape(session, text, "capacity") for text in options.shape]
    given: dict[str, Any] = {"limit": options.limit, "shapes": shapes, "alternatives": options.alternatives}
    if options.workload:
        given |= {"workload": _workload_named(session, options), "alternatives": True}
    else:
        given |= {"manifests": _manifests(session, options.filename), "together": options.together}
    found = session.daemon.call("capacity.pods", **given)
    if not write_answer(session, options.output, found):
        session.write(render(fits_table(found, of_all=bool(options.workload)), session.style))
    return 0 if all(each["fits"] for each in found) else FITS_NOT


def _workload_named(session: VerbSession, options: argparse.Namespace) -> dict[str, str]:
    named = workload_named([options.workload], ("CronJob",))
    if named is None or options.filename:
        raise UsageError("give either KIND/NAME of a workload or -f FILE", "capacity")
    kind, name = named
    return {"kind": kind.name, "name": name, "namespace": namespace_of(session, options) or "default"}


def alternatives_text(each: dict[str, Any]) -> str:
    """`16x1 or 8x2 or 2x8 nvidia.com/gpu`: the number that fits, by the size of each pod; "" where there are none."""
    if not each["alternatives"]:
        return ""
    sizes = [(one["amount"], one["fits"], one["limited"]) for one in each["alternatives"]]
    own = (each["amount"], each["fits"], each["limited"])
    # The smallest size first, as the number that fits falls with it.
    place = next((n for n, size in enumerate(sizes) if size[1] < own[1]), len(sizes))
    sizes[place:place] = [own] if own[1] else []
    return " or ".join(f"{fits}{'+' if most else ''}x{size}" for size, fits, most in sizes) + f" {each['resource']}"


def fits_table(found: Sequence[dict[str, Any]], *, of_all: bool = False) -> Table:
    """What `capacity.pods` answers, a row for each spec or set. `of_all`: all pods of a workload are counted."""
    headers = (f"+1 {shape['name'].upper()}" for shape in found[0]["shapes"])
    sized = any(each["alternatives"] for each in found)
    heads = ("SPEC", "FIT" if of_all else "MORE FIT", *headers, "NODES", *["ALTERNATIVES"] * sized, "WHY NOT MORE")
    return Table(heads, tuple(_fits_row(each, sized=sized) for each in found))


def _fits_row(each: dict[str, Any], *, sized: bool) -> tuple[str, ...]:
    names = [f"{spec['kind'].lower()}/{spec['name']}" for spec in each["specs"]]
    why = "(--limit)" if each["limited"] else each["why"].partition(". no new claims")[0]
    if len(names) > 1 and not each["limited"]:
        why = f"{names[each['lacking']]}: {why}"
    return (
        " + ".join(names),
        f"{each['fits']}{'+' if each['limited'] else ''}",
        *(_more_text(shape) for shape in each["shapes"]),
        str(each["nodes"]),
        *[alternatives_text(each)] * sized,
        why,
    )


def _more_text(shape: dict[str, Any]) -> str:
    """How many more fit with one more node, and what each then costs where prices were given."""
    if shape["more"] is None:
        return "?"
    price = f" ({shape['price'] / shape['more']:.3g} each)" if shape["more"] > 0 and shape["price"] != 1 else ""
    return f"{shape['more']:+d}{price}"


def _needed_words(words: VerbParser) -> None:
    file_flag(words, needed=False)
    _shape_flag(words, "a kind of node that can be had, and its price (1); may be repeated")
    words.add_argument("--limit", type=whole_number, default=512, metavar="N", help="nodes of each shape at most (512)")
    output_flag(words, FORMS)


@verb(
    "nodes-needed",
    "How many nodes of given shapes it takes for manifests, or the pending pods, to fit.",
    _needed_words,
    examples=("nodes-needed --shape node.yaml", "nodes-needed -f app.yaml --shape small.yaml=1 --shape large.yaml=3.5"),
)
def needed(session: VerbSession, options: argparse.Namespace) -> int:
    """The status is 3 where no number of these nodes does."""
    if not options.shape:
        raise UsageError("which nodes can be had? --shape NODE.yaml[=PRICE]", "nodes-needed")
    shapes = [_shape(session, text, "nodes-needed") for text in options.shape]
    manifests = _manifests(session, options.filename) if options.filename else []
    found = session.daemon.call("capacity.nodes", manifests=manifests, shapes=shapes, limit=options.limit)
    if not write_answer(session, options.output, found):
        _write(session, found)
    return FITS_NOT if found["unplaced"] else 0


def _write(session: VerbSession, found: dict[str, Any]) -> None:
    if found["unplaced"]:
        many = len(found["unplaced"])
        session.write(
            f"{many} {'pod has' if many == 1 else 'pods have'} no place, however many of these nodes there are:\n"
        )
        for pod in found["unplaced"][:10]:
            session.write(f"  {pod['pod']}: {pod['why']}\n")
        return
    if not any(each["count"] for each in found["nodes"]):
        session.write("everything fits without another node\n")
        return
    rows = tuple((each["name"], str(each["count"]), f"{each['count'] * each['price']:g}") for each in found["nodes"])
    session.write(render(Table(("SHAPE", "NODES", "PRICE"), rows), session.style))
    tried = f"{found['trials']} sets tried"
    how = "the fewest that do" if found["exact"] else "no node of it can be left out; another mixture may be cheaper"
    session.write(f"price {found['price']:g}: {how} ({tried})\n")


def _shape(session: VerbSession, text: str, verb: str) -> dict[str, Any]:
    file, equals, price = text.rpartition("=")
    if not equals:
        file, price = text, "1"
    try:
        amount = float(price)
    except ValueError:
        raise UsageError(f'--shape {text}: "{price}" is no price', verb) from None
    manifests = _manifests(session, [file])
    if len(manifests) != 1 or manifests[0].get("kind") != "Node":
        raise UsageError(f"--shape {file}: one Node is expected in it", verb)
    return {"manifest": manifests[0], "price": amount}


_PAGES: Final = {"markdown": upgrade.as_markdown, "html": upgrade.as_html}
_COMPARE_FORMS: Final = (*FORMS, *_PAGES)


def _compare_words(words: VerbParser) -> None:
    words.add_argument("--config", action="append", default=[], metavar="FILE", help="a configuration; give two")
    words.add_argument(
        "--kube-version",
        metavar="A,B",
        help="instead: two versions of Kubernetes, such as 1.34,1.36; without -f each pod of the cluster is decided "
        "about by itself",
    )
    words.add_argument(
        "--from",
        dest="origin",
        type=path_text,
        action="append",
        default=[],
        metavar="PATH",
        help="the cluster of a dump instead of the daemon's; with --kube-version one --config says how it is scheduled",
    )
    words.add_argument("--scenario", type=path_text, metavar="FILE", help="with --kube-version: the pods of a scenario")
    file_flag(words, needed=False)
    words.add_argument("--limit", type=whole_number, default=100, metavar="N", help="print so many pods (100)")
    output_flag(words, _COMPARE_FORMS)


@verb(
    "compare",
    "One workload under two configurations or versions: which pods differ, and why. 0: none, 1: some, 2: an error.",
    _compare_words,
    examples=(
        "compare --config now.yaml --config packed.yaml -f app.yaml",
        "compare --kube-version 1.34,1.36",
        "compare --kube-version 1.34,1.36 -f app.yaml -o markdown",
        "compare --kube-version 1.34,1.36 --from dump/",
        "compare --kube-version 1.34,1.36 --from dump/ --config scheduler.yaml",
        "compare --config now.yaml --config packed.yaml --from dump/",
        "compare --kube-version 1.34,1.36 --scenario upgrade.txt",
    ),
    failed=2,
)
def compare(session: VerbSession, options: argparse.Namespace) -> int:
    """The status is 1 where pods differ, as diff's, and 2 where nothing could be compared."""
    output_of(options.output, _COMPARE_FORMS)
    if options.kube_version is not None:
        return _compare_versions(session, options)
    if options.output in _PAGES:
        raise UsageError(f"compare -o {options.output} is for --kube-version", "compare")
    if options.scenario is not None:
        raise UsageError("compare --scenario is for --kube-version", "compare")
    if len(options.config) != 2:
        raise UsageError("compare --config A --config B: two configurations are expected", "compare")
    sources, failed = sources_of(session, options.config)
    if failed or len(sources) != 2:
        raise UsageError("compare: a configuration cannot be read", "compare")
    manifests = _workload(session, options.filename)
    texts = [source.text for source in sources]
    if options.origin:
        found = _offline(session, {"configs": texts, "manifests": manifests, "origin": options.origin})
    else:
        found = _of_daemon(session, configs=texts, manifests=manifests)
    if not write_answer(session, options.output, found):
        session.write(comparison_text(found, options.limit))
    return 1 if found["different"] else 0


def _workload(session: VerbSession, files: Sequence[str]) -> list[dict[str, Any]]:
    """The objects of -f, none without it. Raises UsageError where there are none in it."""
    manifests = _manifests(session, files) if files else []
    if files and not manifests:
        raise UsageError(f"-f {', '.join(files)}: there are no objects in it", "compare")
    return manifests


def _compare_versions(session: VerbSession, options: argparse.Namespace) -> int:
    versions = [text.strip() for text in options.kube_version.split(",")]
    if len(versions) != 2:
        raise UsageError("compare --kube-version A,B: two versions are expected", "compare")
    if options.config and (len(options.config) > 1 or not options.origin):
        raise UsageError("compare --kube-version A,B: one --config at most, and with --from", "compare")
    sources, failed = sources_of(session, options.config) if options.config else ([], 0)
    if failed:
        raise UsageError("compare: a configuration cannot be read", "compare")
    manifests = _workload(session, options.filename)
    if not options.origin and options.scenario is None:
        found = _of_daemon(session, versions=versions, manifests=manifests)
    elif options.scenario is not None and (options.origin or options.filename):
        raise UsageError("compare --scenario FILE brings its pods itself: no --from, no -f", "compare")
    else:
        named = {"versions": versions, "manifests": manifests, "origin": options.origin, "scenario": options.scenario}
        found = _offline(session, {**named, "configs": [source.text for source in sources]})
    if options.output in _PAGES:
        session.write(_PAGES[options.output](found, options.limit))
    elif not write_answer(session, options.output, found):
        session.write(upgrade.as_text(found, options.limit))
    return 1 if found["different"] else 0


def _of_daemon(session: VerbSession, **named: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = session.daemon.call("capacity.compare", **named)
    except KscheddError as fault:  # 1 would say that something differs
        raise UsageError(str(fault), "compare") from fault
    return found


def _offline(session: VerbSession, named: dict[str, Any]) -> dict[str, Any]:
    """The answer about something else than the daemon's cluster."""
    if session.offline is None:
        raise UsageError("compare --from and --scenario are for the command line", "compare")
    try:
        found: dict[str, Any] = session.offline("capacity.compare", named)
    except KscheddError as fault:  # of input: 1 would say that something differs
        raise UsageError(str(fault), "compare") from fault
    return found
