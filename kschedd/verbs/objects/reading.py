"""get and describe: objects in every output format, once or as a watch."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from kschedd.api.schemas.kinds import Kind, kind_of, lookup
from kschedd.api.text.numbers import whole_number
from kschedd.api.text.similar import did_you_mean
from kschedd.printing import documents
from kschedd.printing.columns.by_kind import RowContext
from kschedd.printing.columns.events import event_moment
from kschedd.printing.columns.kind_tables import table_of
from kschedd.printing.terminal.tables import Table, render, widths_of
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    Output,
    UsageError,
    VerbParser,
    namespace_flags,
    namespace_of,
    output_flag,
    output_of,
    verb,
)
from kschedd.verbs.command_line.paused import note_if_paused
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import Target, get_object, targets_of, where
from kschedd.verbs.objects.following import Place, follow

Raw = dict[str, Any]


def _get_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="KIND [NAME...] | KIND/NAME", help="kinds may be separated by commas")
    namespace_flags(words, everywhere=True)
    output_flag(words)
    words.add_argument("-l", "--selector", metavar="LABELS", help="objects with these labels, such as app=web,tier!=db")
    words.add_argument(
        "--field-selector", metavar="FIELDS", help="objects with these fields, such as spec.nodeName=node-a"
    )
    words.add_argument("-w", "--watch", action="store_true", help="then print every change")
    words.add_argument("--watch-only", action="store_true", help="print only changes from now on")
    words.add_argument("--no-headers", action="store_true", help="omit the header line")
    words.add_argument("--show-labels", action="store_true", help="add a column of labels")
    words.add_argument(
        "--show-managed-fields", action="store_true", help="keep metadata.managedFields in -o yaml and json"
    )
    words.add_argument("--show-kind", action="store_true", help="prefix names with their kind")
    words.add_argument(
        "-L",
        "--label-columns",
        action="append",
        default=[],
        metavar="KEYS",
        help="add a column for each of these labels, such as app,tier; may be repeated",
    )
    words.add_argument("--sort-by", metavar="PATH", help="sort by this field, such as .metadata.name")
    words.add_argument("--ignore-not-found", action="store_true", help="ignore objects that do not exist")
    words.add_argument("--template", metavar="TEMPLATE", help="template of -o; without -o, a go-template")
    words.add_argument("--chunk-size", type=int, metavar="N", help="no effect: lists are always complete")


@attrs.frozen
class _Layout:
    """The settings of `get` for its output."""

    output: Output
    headers: bool
    labels: bool
    label_columns: tuple[str, ...]
    namespaces: bool
    prefixed: bool

    @property
    def is_table(self) -> bool:
        return self.output.form in ("table", "wide", "custom-columns")


def _form(options: argparse.Namespace) -> str:
    """Return the value of -o, combined with that of --template."""
    form = str(options.output).removeprefix("=")
    if options.template is None or "=" in form:
        return form
    return f"{'go-template' if form == 'table' else form}={options.template}"


@verb(
    "get",
    "List objects, or show one.",
    _get_words,
    examples=(
        "get pods -o wide",
        "get pods,nodes -A",
        "get deployment/web -o yaml",
        "get pods -L app,tier -o wide",
        "get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName",
        "get pods -l app=web --field-selector spec.nodeName=node-a -w",
        "get pods -o jsonpath='{range .items[*]}{.metadata.name} {.spec.nodeName}{\"\\n\"}{end}'",
    ),
    completes="kinds",
)
def get(session: VerbSession, options: argparse.Namespace) -> int:
    output = output_of(_form(options), folder=session.folder)
    namespace = namespace_of(session, options)
    targets = targets_of(session, options.what)
    watching = options.watch or options.watch_only
    named = any(target.name for target in targets)
    if named and (options.selector or options.field_selector):
        raise UsageError("a name cannot be combined with selectors")
    if named and options.all_namespaces and any(target.kind.namespaced for target in targets):
        raise UsageError("a name excludes --all-namespaces; give the namespace with -n")
    if watching and len(targets) > 1:
        raise UsageError("-w accepts only one kind or one object")
    found: list[_Group] = []
    failed = 0
    if not options.watch_only:
        found, failed = _fetch(session, targets, options, namespace, managers=options.show_managed_fields)
    kinds = {target.kind.name for target in targets}
    layout = _Layout(
        output,
        not options.no_headers,
        options.show_labels,
        tuple(key for keys in options.label_columns for key in keys.removeprefix("=").split(",")),
        namespace is None and any(target.kind.namespaced for target in targets),
        len(kinds) > 1 or options.show_kind,
    )
    for group in found:
        if options.sort_by:
            _sort(group.objects, options.sort_by)
        elif group.kind.name == "Event":
            group.objects.sort(key=event_moment)
    objects = [raw for group in found for raw in group.objects]
    if layout.is_table:
        printer = _Tables(session, layout)
        if any(_has_no_node(raw) for group in found for raw in group.objects if group.kind.name == "Pod"):
            note_if_paused(session)
        if objects or not failed:
            printer.first(found)
        custom = output.form == "custom-columns"
        if not objects and not custom and not failed and not watching and not (named and options.ignore_not_found):
            everywhere = namespace is None or not any(target.kind.namespaced for target in targets)
            session.write_error(f"No resources found{'.' if everywhere else f' in {namespace} namespace.'}\n")
            if options.namespace and not everywhere:
                _hint_if_missing(session, str(namespace))
        one: Callable[[Raw], None] = printer.later
    else:
        single = named and len(targets) == 1
        if not watching or objects:
            _print_documents(session, output, objects, single=single, watching=watching)

        def one(raw: Raw) -> None:
            _print_documents(session, output, [raw], single=True, watching=True)

    if watching and not failed:
        _watch(session, targets[0], options, namespace, found, one)
    return 1 if failed else 0


def _hint_if_missing(session: VerbSession, namespace: str) -> None:
    """Write a hint if the namespace does not exist."""
    known = [raw["metadata"]["name"] for raw in session.daemon.call("objects.list", kind="Namespace")["items"]]
    if namespace not in known:
        session.hint(f'There is no namespace "{namespace}"{did_you_mean(namespace, known)}')


def _has_no_node(pod: Raw) -> bool:
    return not (pod.get("spec") or {}).get("nodeName")


@attrs.frozen
class _Group:
    """The objects of one kind, and the resourceVersion of their list."""

    kind: Kind
    objects: list[Raw]
    version: Any = None
    epoch: str | None = None  # epoch to which the version belongs


def _fetch(
    session: VerbSession,
    targets: Sequence[Target],
    options: argparse.Namespace,
    namespace: str | None,
    *,
    managers: bool = False,
) -> tuple[list[_Group], int]:
    """Fetch the targets. Return the objects by kind, and the number of targets that could not be fetched."""
    groups: dict[str, _Group] = {}
    failed = 0
    for target in targets:
        if not target.name:
            answer = session.daemon.call(
                "objects.list",
                kind=target.kind.name,
                label_selector=options.selector,
                field_selector=options.field_selector,
                **where(target.kind, namespace),
                **({"managed_fields": True} if managers else {}),
            )
            items, version, epoch = list(answer["items"]), answer.get("resource_version"), answer.get("epoch")
            groups[target.kind.name] = _Group(target.kind, items, version, epoch)
            continue
        try:
            raw = get_object(session, target.kind, target.name, namespace, managers=managers)
        except RpcError as error:
            if error.code == "not_found" and options.ignore_not_found:
                continue
            session.error(str(error))
            failed += 1
            continue
        groups.setdefault(target.kind.name, _Group(target.kind, [])).objects.append(raw)
    return list(groups.values()), failed


def _sort(objects: list[Raw], path: str) -> None:
    from kschedd.printing.columns.ordering import sort_by
    from kschedd.printing.templates.jsonpath import JsonPathError, find

    try:
        find(path, {})
        if not sort_by(objects, lambda raw: next(iter(find(path, raw)), None)):
            raise UsageError(f"--sort-by: none of the objects has a field {path}")
    except JsonPathError as fault:
        raise UsageError(f"--sort-by: {fault}") from fault


def _print_documents(session: VerbSession, output: Output, objects: list[Raw], *, single: bool, watching: bool) -> None:
    if output.form == "name":
        session.write("".join(f"{documents.name(raw)}\n" for raw in objects))
        return
    document = objects[0] if single and len(objects) == 1 else documents.listing(objects)
    if single and not objects:
        return
    if output.form == "jsonpath":
        from kschedd.printing.templates.jsonpath import evaluate

        text = evaluate(output.template, document)
        session.write(text if not (session.style.width or watching) or text.endswith("\n") else text + "\n")
    elif output.form == "go-template":
        session.write(output.template.evaluate(document))
    elif output.form == "jsonpath-as-json":
        from kschedd.printing.templates.jsonpath import values_at

        session.write(documents.as_json(values_at(output.template, document)))
    elif output.form == "json":
        session.write(documents.as_json(document))
    else:
        session.write(documents.as_yaml(document) if not watching else "---\n" + documents.as_yaml(document))


class _Tables:
    """Prints one table per kind; later rows have the column widths of the first table."""

    def __init__(self, session: VerbSession, layout: _Layout) -> None:
        self._session = session
        self._layout = layout
        self._widths: list[int] | None = None
        self._requested: Mapping[str, Mapping[str, int]] = {}

    def first(self, groups: Sequence[_Group]) -> None:
        layout, style = self._layout, self._session.style
        if layout.output.form == "custom-columns":  # one table for all kinds, with headers even if it is empty
            shown = [_Group(lookup("List"), [raw for group in groups for raw in group.objects])]
        else:
            shown = [group for group in groups if group.objects]
        if layout.output.form == "wide" and any(group.kind.name == "Node" for group in shown):
            self._requested = _requested(self._session)
        for place, group in enumerate(shown):
            prefix = f"{group.kind.resource}/" if layout.prefixed else ""
            table = self._table(group.kind.name, group.objects, prefix)
            self._widths = widths_of(table)
            gap = "\n" if place else ""
            self._session.write(gap + render(table, style, headers=layout.headers))

    def later(self, raw: Raw) -> None:
        kind = kind_of(raw)
        table = self._table(kind.name, [raw], f"{kind.resource}/" if self._layout.prefixed else "")
        headers = self._widths is None and self._layout.headers
        if self._widths is None:
            self._widths = widths_of(table)
        self._session.write(render(table, self._session.style, headers=headers, widths=self._widths))

    def _table(self, kind: str, objects: Sequence[Raw], prefix: str) -> Table:
        if self._layout.output.form == "custom-columns":
            from kschedd.printing.columns.custom_columns import custom_table

            return custom_table(self._layout.output.template, objects)
        around = RowContext(self._session.cluster_now(), self._requested)
        wide = self._layout.output.form == "wide"
        return table_of(
            kind,
            objects,
            around,
            wide=wide,
            namespaces=self._layout.namespaces,
            labels=self._layout.labels,
            label_columns=self._layout.label_columns,
            prefix=prefix,
        )


def _requested(session: VerbSession) -> Mapping[str, Mapping[str, int]]:
    from kschedd.printing.describing.node import requested_by_node

    return requested_by_node(session.daemon.call("objects.list", kind="Pod")["items"])


def _watch(
    session: VerbSession,
    target: Target,
    options: argparse.Namespace,
    namespace: str | None,
    found: Sequence[_Group],
    show: Callable[[Raw], None],
) -> None:
    """Print every change after the printed version, until the user ends the watch.

    The watch resumes if the daemon restarts.
    """
    from kschedd.api.selecting.selector_text import SelectorTextError, parse_field_selector, parse_selector_text

    try:
        labels = parse_selector_text(options.selector or "")
        fields = parse_field_selector(options.field_selector or "")
    except SelectorTextError as fault:
        raise UsageError(str(fault)) from fault

    def show_change(change: Raw) -> None:
        raw = change["object"]
        meta = raw.get("metadata") or {}
        if target.name and meta.get("name") != target.name:
            return
        if labels.matches(meta.get("labels") or {}) and fields.matches(raw):
            show(raw)

    def start_over(_lost: Place) -> Place:
        if options.watch_only:
            return Place("resource_version", "epoch")
        there, _ = _fetch(session, [target], options, namespace, managers=options.show_managed_fields)
        for group in there:
            for raw in group.objects:
                show(raw)
        return _place(there)

    missed = "what changed in between is not known"
    if not options.watch_only:
        missed += "; existing objects are listed again, and deletions since then are not shown"
    params = {"kind": target.kind.name, **where(target.kind, namespace)}
    follow(session, "objects.watch", params, _place(found), show_change, start_over, missed)


def _place(found: Sequence[_Group]) -> Place:
    """Return the parameters of a watch that starts after the printed objects."""
    group = next(iter(found), None)
    version = None if group is None else group.version
    if group is not None and version is None:
        version = group.objects[0]["metadata"].get("resourceVersion")
    if isinstance(version, str):
        version = whole_number(version)
    return Place("resource_version", "epoch", version, None if group is None else group.epoch)


# -- describe -------------------------------------------------------------------------------------------------------


def _describe_words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="KIND [NAME...] | KIND/NAME")
    namespace_flags(words, everywhere=True)
    words.add_argument("-l", "--selector", metavar="LABELS", help="objects with these labels")
    words.add_argument("--no-events", action="store_true", help="omit events")


@verb(
    "describe",
    "Show the details of objects, with their events.",
    _describe_words,
    examples=("describe pod web-0", "describe node/node-a"),
    completes="kinds",
)
def describe(session: VerbSession, options: argparse.Namespace) -> int:
    namespace = namespace_of(session, options)
    targets = targets_of(session, options.what)
    if options.selector and any(target.name for target in targets):
        raise UsageError("a name cannot be combined with selectors")
    options.field_selector, options.ignore_not_found = None, False
    groups, failed = _fetch(session, targets, options, namespace)
    from kschedd.printing.describing.object import describe as described

    count = 0
    for group in groups:
        for raw in group.objects:
            text = described(raw, _related(session, raw, events=not options.no_events))
            session.write(("\n\n" if count else "") + text)
            count += 1
    if any(_has_no_node(raw) for group in groups for raw in group.objects if group.kind.name == "Pod"):
        note_if_paused(session)
    if not count and not failed:
        session.write_error(f"No resources found{f' in {namespace} namespace' if namespace else ''}.\n")
    return 1 if failed else 0


def _related(session: VerbSession, raw: Raw, *, events: bool) -> Any:
    """Fetch the related objects that describe shows with an object."""
    from kschedd.printing.describing.describe import DescribeContext

    daemon = session.daemon
    meta = raw["metadata"]
    namespace, name, kind = meta.get("namespace"), meta["name"], kind_of(raw).name
    happened = None
    if events:
        about = {"for": f"{kind}/{name}"}
        if namespace:
            about["namespace"] = namespace
        happened = daemon.call("events.list", **about)["events"]
    related = DescribeContext(session.cluster_now(), session.style, happened)
    if kind == "Node":
        pods = daemon.call("objects.list", kind="Pod", field_selector=f"spec.nodeName={name}")["items"]
        return attrs.evolve(related, pods=pods)
    if kind != "Pod":
        return related
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    volume_claims = []
    for volume in spec.get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            volume_claims.append(volume["persistentVolumeClaim"].get("claimName", ""))
        elif "ephemeral" in volume:
            volume_claims.append(f"{name}-{volume.get('name', '')}")
    claims = [c["resourceClaimName"] for c in spec.get("resourceClaims") or () if c.get("resourceClaimName")]
    claims += [s["resourceClaimName"] for s in status.get("resourceClaimStatuses") or () if s.get("resourceClaimName")]
    return attrs.evolve(
        related,
        waiting=None if spec.get("nodeName") else _waiting(session, f"{namespace}/{name}"),
        queue=None if spec.get("nodeName") else _maybe(session, "queue.pod", pod=f"{namespace}/{name}"),
        claims={n: _one(session, "PersistentVolumeClaim", n, namespace) for n in volume_claims},
        resource_claims={n: _one(session, "ResourceClaim", n, namespace) for n in claims},
    )


def _waiting(session: VerbSession, key: str) -> Raw | None:
    return next((pod for pod in session.daemon.call("waiting.list") if pod.get("pod") == key), None)


def _maybe(session: VerbSession, method: str, **params: Any) -> Any:
    """Return the result of the call; None if the object does not exist."""
    try:
        return session.daemon.call(method, **params)
    except RpcError as error:
        if error.code == "not_found":
            return None
        raise


def _one(session: VerbSession, kind: str, name: str, namespace: str | None) -> Raw | None:
    answer = _maybe(session, "objects.get", kind=kind, name=name, namespace=namespace)
    return None if answer is None else answer["object"]
