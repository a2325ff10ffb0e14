"""capacity, nodes-needed, compare: the number of pods that fit, the number of nodes needed, and comparisons.

None of these verbs changes the cluster.
"""

import argparse
import re
from collections.abc import Sequence
from typing import Any, Final

from kschedd.api.schemas.kinds import lookup
from kschedd.errors import KscheddError
from kschedd.printing.reports import agreement, comparison
from kschedd.printing.terminal.tables import Table, flowing, render
from kschedd.service.errors import RpcError
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
from kschedd.verbs.command_line.targets import with_near_name
from kschedd.verbs.command_line.workload_pods import workload_named
from kschedd.verbs.objects.manifests import file_flag, sources_of
from kschedd.verbs.scheduler.pools import pool_sources

DOES_NOT_FIT, FAILED = 1, 2


def _manifests(session: VerbSession, files: Sequence[str]) -> list[dict[str, Any]]:
    """Return the objects of the files. Raises UsageError at the first error."""
    from kschedd.api.manifests import read_text  # YAML is imported only if needed, because this takes long

    sources, failed = sources_of(session, files)
    if failed:
        raise UsageError(f"-f: {failed} of {len(files)} paths cannot be read, so nothing was computed")
    found: list[dict[str, Any]] = []
    for source in sources:
        reading = read_text(source.text, source.name)
        for fault in reading.errors:
            raise UsageError(str(fault))
        found += [dict(manifest.raw) for manifest in reading.manifests]
    return found


def _capacity_words(words: VerbParser) -> None:
    words.add_argument("workload", nargs="?", default="", metavar="KIND/NAME", help="a workload of the cluster")
    namespace_flags(words)
    file_flag(words, needed=False)
    words.add_argument("--alternatives", action="store_true", help="also count pods of half and double the size ...")
    words.add_argument("--together", action="store_true", help="count sets of one pod of each manifest")
    _shape_flag(words, "also count how many more fit with one more node of this shape")
    words.add_argument("--limit", type=whole_number, default=10_000, metavar="N", help="count at most N pods (10000)")
    output_flag(words, FORMS)


def _shape_flag(words: VerbParser, purpose: str) -> None:
    words.add_argument("--shape", action="append", default=[], metavar="NODE.yaml[=PRICE]", help=purpose)


@verb(
    "capacity",
    "Count how many more pods of a manifest fit. Exit status: 0 at least one of each fits, 1 not.",
    _capacity_words,
    examples=(
        "capacity -f pod.yaml",
        "capacity deployment/web",
        "capacity -f job.yaml --alternatives",
        "capacity -f small.yaml -f large.yaml",
        "capacity -f web.yaml -f cache.yaml --together",
        "capacity -f web.yaml --shape small.yaml=1 --shape large.yaml=3.5",
    ),
    completes="object",
    failed=FAILED,
)
def capacity(session: VerbSession, options: argparse.Namespace) -> int:
    """Print a row for each manifest, or one row for all manifests together."""
    if not options.workload and not options.filename:
        raise UsageError("KIND/NAME of a workload or -f FILE is required", "capacity")
    shapes = [_shape(session, text, "capacity") for text in options.shape]
    given: dict[str, Any] = {"limit": options.limit, "shapes": shapes, "alternatives": options.alternatives}
    if options.workload:
        named = _workload_named(session, options)
        given |= {"workload": named, "alternatives": True}
    else:
        given |= {"manifests": _manifests(session, options.filename), "together": options.together}
    try:
        found = session.daemon.call("capacity.pods", **given)
    except RpcError as error:
        if not options.workload:
            raise
        raise with_near_name(session, error, lookup(named["kind"]), named["name"], named["namespace"]) from error
    if not write_answer(session, options.output, found):
        session.write(render(fits_table(found, of_all=bool(options.workload)), session.style))
    return 0 if all(each["fits"] for each in found) else DOES_NOT_FIT


def _workload_named(session: VerbSession, options: argparse.Namespace) -> dict[str, str]:
    named = workload_named([options.workload], ("CronJob",))
    if named is None or options.filename:
        such_as = "" if options.filename or "/" in options.workload else f"; such as deployment/{options.workload}"
        raise UsageError(f"give either KIND/NAME of a workload or -f FILE{such_as}", "capacity")
    kind, name = named
    return {"kind": kind.name, "name": name, "namespace": namespace_of(session, options) or "default"}


def alternatives_text(each: dict[str, Any]) -> str:
    """Return text such as `16x1 or 8x2 or 2x8 nvidia.com/gpu`: how many pods of each size fit; "" without sizes."""
    if not each["alternatives"]:
        return ""
    sizes = [(one["amount"], one["fits"], one["limited"]) for one in each["alternatives"]]
    own = (each["amount"], each["fits"], each["limited"])
    # Sizes are sorted in ascending order, which is the descending order of their counts.
    place = next((n for n, size in enumerate(sizes) if size[1] < own[1]), len(sizes))
    sizes[place:place] = [own] if own[1] else []
    return " or ".join(f"{fits}{'+' if most else ''}x{size}" for size, fits, most in sizes) + f" {each['resource']}"


def fits_table(found: Sequence[dict[str, Any]], *, of_all: bool = False) -> Table:
    """Return the answer of `capacity.pods` as a table, with a row for each pod spec or set of specs.

    `of_all` is true if the count includes all pods of a workload.
    """
    headers = (f"+1 {shape['name'].upper()}" for shape in found[0]["shapes"])
    sized = any(each["alternatives"] for each in found)
    heads = ("SPEC", "FIT" if of_all else "MORE FIT", *headers, "NODES", *["FIT BY SIZE"] * sized, "WHY NOT MORE")
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
    """Return how many more pods fit with one more node, and the price per pod if there are prices."""
    if shape["more"] is None:
        return "?"
    price = f" ({shape['price'] / shape['more']:.3g} each)" if shape["more"] > 0 and shape["price"] != 1 else ""
    return f"{shape['more']:+d}{price}"


def _needed_words(words: VerbParser) -> None:
    file_flag(words, needed=False)
    _shape_flag(words, "manifest of an available node, and its price (1); may be repeated")
    words.add_argument(
        "--pools",
        type=path_text,
        action="append",
        default=[],
        metavar="FILE",
        help="node pools (docs/POOLS.md): the nodes that they can launch, with their prices and limits",
    )
    words.add_argument(
        "--max-nodes", type=whole_number, default=512, metavar="N", help="add at most N nodes of a shape (512)"
    )
    words.renamed["--limit"] = "--max-nodes"
    output_flag(words, FORMS)


@verb(
    "nodes-needed",
    "Count the nodes needed for manifests, or for the pending pods. Exit status: 0 they can fit, 1 not.",
    _needed_words,
    examples=(
        "nodes-needed --shape node.yaml",
        "nodes-needed -f app.yaml --shape small.yaml=1 --shape large.yaml=3.5",
        "nodes-needed -f app.yaml --pools nodepool.yaml --pools instance_types.json",
    ),
    failed=FAILED,
)
def needed(session: VerbSession, options: argparse.Namespace) -> int:
    if not options.shape and not options.pools:
        raise UsageError("--shape NODE.yaml[=PRICE] or --pools FILE is required", "nodes-needed")
    shapes = [_shape(session, text, "nodes-needed") for text in options.shape]
    manifests = _manifests(session, options.filename) if options.filename else []
    pools = pool_sources(session, options.pools, "nodes-needed")
    found = session.daemon.call(
        "capacity.nodes", manifests=manifests, shapes=shapes, pools=pools, limit=options.max_nodes
    )
    if not write_answer(session, options.output, found):
        _write(session, found, pools=bool(pools))
    return DOES_NOT_FIT if found["unplaced"] else 0


def _write(session: VerbSession, found: dict[str, Any], *, pools: bool) -> None:
    if found["unplaced"]:
        many = len(found["unplaced"])
        limits = " within the limits of the pools" if pools else ""
        session.write(
            f"{many} {'pod does' if many == 1 else 'pods do'} not fit on any number of these nodes{limits}:\n"
        )
        for pod in found["unplaced"][:10]:
            session.write(f"  {pod['pod']}: {pod['why']}\n")
        return
    if not any(each["count"] for each in found["nodes"]):
        session.write("everything fits without additional nodes\n")
        return
    session.write(render(_needed_table(found["nodes"]), session.style))
    tried = f"{found['trials']} sets tried"
    how = "the minimum"
    if not found["exact"]:
        gap = (found["price"] - found["bound"]) / found["price"]
        how = (
            f"no node of it can be omitted; another mixture may be up to {gap:.1%} cheaper (bound: {found['bound']:g})"
        )
    session.write(f"price {found['price']:g}: {how} ({tried})\n")


def _needed_table(nodes: Sequence[dict[str, Any]]) -> Table:
    """Return a row for each shape; shapes of pools have columns for the launch."""
    prices = [f"{each['count'] * each['price']:g}" for each in nodes]
    if not any(each["pool"] for each in nodes):
        rows = [(each["name"], str(each["count"]), price) for each, price in zip(nodes, prices, strict=True)]
        return Table(("SHAPE", "NODES", "PRICE"), tuple(rows))
    cells = [
        (
            *(each["pool"] or "-", each["type"] or each["name"], each["zone"] or "-", each["capacity_type"] or "-"),
            *(str(each["count"]), price),
        )
        for each, price in zip(nodes, prices, strict=True)
    ]
    return Table(("POOL", "TYPE", "ZONE", "CAPACITY", "NODES", "PRICE"), tuple(cells))


def _shape(session: VerbSession, text: str, verb: str) -> dict[str, Any]:
    file, equals, price = text.rpartition("=")
    if not equals:
        file, price = text, "1"
    try:
        amount = float(price)
    except ValueError:
        raise UsageError(f'--shape {text}: invalid price "{price}": a number is expected', verb) from None
    manifests = _manifests(session, [file])
    if len(manifests) != 1 or manifests[0].get("kind") != "Node":
        raise UsageError(f"--shape {file}: the file must contain exactly one Node", verb)
    return {"manifest": manifests[0], "price": amount}


_PAGES: Final = {"markdown": comparison.as_markdown, "html": comparison.as_html}
_COMPARE_FORMS: Final = (*FORMS, *_PAGES)


def _compare_words(words: VerbParser) -> None:
    words.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="FILE",
        help="a configuration; one alone is compared with the daemon's (with --from: with the default)",
    )
    words.add_argument(
        "--weight",
        action="append",
        default=[],
        metavar="PLUGIN=N",
        help="compare with this weight of a score plugin; may be repeated",
    )
    words.add_argument("--kube-version", metavar="A,B", help="compare two versions of Kubernetes, such as 1.34,1.36")
    words.add_argument(
        "--from",
        dest="origin",
        type=path_text,
        action="append",
        default=[],
        metavar="PATH",
        help="use the cluster in a dump instead of the daemon's cluster",
    )
    words.add_argument(
        "--scenario", type=path_text, metavar="FILE", help="use the pods of a scenario (requires --kube-version)"
    )
    file_flag(words, needed=False)
    words.add_argument(
        "--plugin",
        type=path_text,
        action="append",
        default=[],
        metavar="FILE.py",
        help="a Python file with plugins (requires --from; a daemon has plugins of its own)",
    )
    words.add_argument(
        "--mirror",
        action="store_true",
        help="compare the placements in the mirrored cluster with the placements that the daemon would choose",
    )
    words.add_argument("--limit", type=whole_number, default=100, metavar="N", help="print at most N pods (100)")
    output_flag(words, _COMPARE_FORMS)


@verb(
    "compare",
    "Compare placements under two configurations or Kubernetes versions, or with a mirrored cluster. All pods are "
    "compared, or the pods of a workload (-f). Exit status: 0 equal, 1 different.",
    _compare_words,
    examples=(
        "compare --weight NodeResourcesFit=5",
        "compare --config packed.yaml",
        "compare --config now.yaml --config packed.yaml --from dump/",
        "compare --config now.yaml --config packed.yaml -f app.yaml",
        "compare --kube-version 1.34,1.36",
        "compare --kube-version 1.34,1.36 -f app.yaml -o markdown",
        "compare --kube-version 1.34,1.36 --from dump/ --config scheduler.yaml",
        "compare --kube-version 1.34,1.36 --scenario upgrade.txt",
        "compare --mirror",
    ),
    failed=2,
)
def compare(session: VerbSession, options: argparse.Namespace) -> int:
    output_of(options.output, _COMPARE_FORMS)
    if options.mirror:
        return _compare_with_mirror(session, options)
    versions = _compared_versions(options)
    if options.plugin and not options.origin:
        raise UsageError("--plugin requires --from: a daemon has the plugins it was started with", "compare")
    sources, failed = sources_of(session, options.config)
    if failed:
        return FAILED
    if len(sources) != len(options.config):
        raise UsageError("each --config must name one file", "compare")
    named: dict[str, Any] = {
        "versions": versions,
        "configs": [source.text for source in sources],
        "names": [source.name for source in sources],
        "weights": dict(_weight(text) for text in options.weight),
        "manifests": _workload(session, options.filename),
    }
    try:  # an exception would give exit status 1, which means that the results differ
        if options.origin or options.scenario is not None:
            if session.offline is None:
                raise UsageError("--from and --scenario are only available on the command line", "compare")
            elsewhere = {"origin": options.origin, "scenario": options.scenario, "plugins": options.plugin}
            found = session.offline("capacity.compare", {**named, **elsewhere})
        else:
            found = session.daemon.call("capacity.compare", **named)
    except KscheddError as fault:
        raise UsageError(str(fault), "compare") from fault
    if options.output in _PAGES:
        session.write(_PAGES[options.output](found, options.limit))
    elif not write_answer(session, options.output, found):
        session.write(flowing(comparison.as_text(found, options.limit), session.style))
    return 1 if found["different"] else 0


def _compare_with_mirror(session: VerbSession, options: argparse.Namespace) -> int:
    others = {
        "--config": options.config,
        "--weight": options.weight,
        "--kube-version": options.kube_version,
        "--from": options.origin,
        "--scenario": options.scenario,
        "-f": options.filename,
        "--plugin": options.plugin,
    }
    given = [flag for flag, value in others.items() if value]
    if given:
        raise UsageError(f"--mirror excludes {given[0]}", "compare")
    if options.output in _PAGES:
        raise UsageError(f"-o {options.output} is not available with --mirror: use table, json or yaml", "compare")
    try:
        found = session.daemon.call("daemon.agreement")
    except KscheddError as fault:
        raise UsageError(str(fault), "compare") from fault
    if not write_answer(session, options.output, found):
        session.write(flowing(agreement.as_text(found, options.limit, session.now(), session.style), session.style))
    return 1 if agreement.differs(found) else 0


def _compared_versions(options: argparse.Namespace) -> list[str]:
    """Return the two versions of --kube-version, if given.

    Raises UsageError for flags that exclude each other.
    """
    if options.kube_version is None:
        if options.scenario is not None:
            raise UsageError("--scenario requires --kube-version", "compare")
        if not 1 <= len(options.config) + bool(options.weight) <= 2:
            why = "--weight PLUGIN=N, --config FILE (once or twice) or --kube-version A,B is required"
            raise UsageError(why, "compare")
        return []
    versions = [text.strip() for text in options.kube_version.split(",")]
    if len(versions) != 2:
        raise UsageError(
            f'--kube-version "{options.kube_version}": two versions are expected, such as 1.34,1.36', "compare"
        )
    if options.weight:
        raise UsageError("--kube-version excludes --weight", "compare")
    if options.config and (len(options.config) > 1 or not options.origin):
        raise UsageError("--kube-version accepts one --config, and only together with --from", "compare")
    if options.scenario is not None and (options.origin or options.filename):
        raise UsageError("--scenario excludes --from and -f: the scenario has its own pods", "compare")
    return versions


def _weight(text: str) -> tuple[str, int]:
    """Parse PLUGIN=N. Raises UsageError."""
    plugin, _, number = text.partition("=")
    weight = int(number) if re.fullmatch(r"[0-9]{1,9}", number) else 0
    if not plugin or not weight:
        raise UsageError(f'--weight "{text}": PLUGIN=N is expected, such as NodeResourcesFit=5', "compare")
    return plugin, weight


def _workload(session: VerbSession, files: Sequence[str]) -> list[dict[str, Any]]:
    """Return the objects of -f, if given. Raises UsageError if the files contain no objects."""
    manifests = _manifests(session, files) if files else []
    if files and not manifests:
        raise UsageError(f"-f {', '.join(files)}: no objects found", "compare")
    return manifests
