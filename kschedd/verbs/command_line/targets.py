"""Objects that a command names: `pods`, `pod web db`, `pod/web node/n1`, `pods,nodes`, `all`.

The daemon is called only to find custom kinds and to suggest similar names.
"""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from kschedd.api.schemas.kinds import KINDS, Kind, group_of, lookup
from kschedd.api.text.similar import did_you_mean
from kschedd.errors import KscheddError
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import UsageError, namespace_of
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.usage_messages import is_file

ALL_KINDS = ("Pod", "ReplicationController", "Service", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "Job")


@attrs.define(eq=False)
class UnknownKindError(KscheddError):
    """A word that is not the name of a kind."""

    word: str
    hint: str

    def __str__(self) -> str:
        return f'there is no kind "{self.word}"{self.hint}'


@attrs.frozen
class Target:
    """One object, or, with an empty name, all objects of a kind."""

    kind: Kind
    name: str = ""


def kind_of_word(session: VerbSession, word: str) -> Kind:
    """Return the kind that a word names. Raises UnknownKindError."""
    kind = lookup(word)
    if kind.known:
        return kind
    there = session.daemon.call("objects.kinds")
    folded = word.casefold()
    for entry in there:  # if several kinds have this name, built-in kinds are first
        if folded in _spellings(entry):
            known = lookup(entry["name"])
            return known if known.known else _kind(entry)
    names = [name for kind in KINDS for name in (kind.plural, kind.singular, *kind.short)]
    names += [str(entry.get("plural") or entry["name"]) for entry in there]
    if is_file(word):
        raise UnknownKindError(word, f'; did you mean "-f {word}"?')
    otherwise = '; `api-resources` lists all kinds. The kind goes before the name: "pod web", "pod/web"'
    raise UnknownKindError(word, did_you_mean(word, names) or otherwise)


def _spellings(entry: dict[str, Any]) -> set[str]:
    """Return all words for a kind: its names, each with and without its group."""
    name, group = str(entry["name"]), group_of(str(entry.get("api_version") or ""))
    words = {name.partition(".")[0], str(entry.get("plural") or name), *(entry.get("short_names") or ())}
    return {word.casefold() for word in (name, *words, *(f"{word}.{group}" for word in words))}


def _kind(entry: dict[str, Any]) -> Kind:
    name = str(entry["name"])
    return Kind(
        name,
        str(entry.get("plural") or name.lower()),
        name.lower(),
        tuple(entry.get("short_names") or ()),
        (str(entry.get("api_version") or "v1"),),
        bool(entry.get("namespaced", True)),
        known=False,
    )


def targets_of(session: VerbSession, words: Sequence[str], *, needs_name: bool = False) -> list[Target]:
    """Return the targets that these words name. Raises UsageError, UnknownKindError."""
    if not words:
        raise UsageError("a kind is required, such as pods, pod web or pod/web")
    # an empty word is probably an unset $NAME, which must not select all objects
    if "" in (*words[0].split(","), *words[1:]):
        raise UsageError("a kind or name is empty; write for example pods, pod web or pod/web")
    if any("/" in word for word in words):
        found = []
        for word in words:
            kind, slash, name = word.partition("/")
            if not slash or not kind or not name or "/" in name:
                raise UsageError(
                    f'"{word}": KIND/NAME cannot be mixed with other forms; repeat KIND/NAME, such as pod/web pod/db'
                )
            found.append(Target(kind_of_word(session, kind), name))
        return found
    kinds = [kind for word in words[0].split(",") for kind in _kinds(session, word)]
    names = words[1:]
    if needs_name and not names:
        raise UsageError(f"a {kinds[0].singular} name is required: {kinds[0].singular} NAME")
    if not names:
        return [Target(kind) for kind in kinds]
    return [Target(kind, name) for kind in kinds for name in names]


def _kinds(session: VerbSession, word: str) -> list[Kind]:
    return [lookup(name) for name in ALL_KINDS] if word == "all" else [kind_of_word(session, word)]


def where(kind: Kind, namespace: str | None) -> dict[str, str]:
    """Return the namespace as a call's parameter; empty for cluster-scoped kinds."""
    return {"namespace": namespace} if kind.namespaced and namespace is not None else {}


def selected(
    session: VerbSession, targets: Sequence[Target], options: argparse.Namespace
) -> list[tuple[Kind, str, str | None]]:
    """Yield kind, name and namespace of each object selected by name, -l or --all."""
    namespace = namespace_of(session, options)
    found: list[tuple[Kind, str, str | None]] = []
    for target in targets:
        if target.name:
            found.append((target.kind, target.name, namespace))
            continue
        selector = getattr(options, "selector", None)
        if not selector and not getattr(options, "all", False):
            raise UsageError(f"{target.kind.plural}: names, -l LABELS or --all are required")
        answer = session.daemon.call(
            "objects.list", kind=target.kind.name, label_selector=selector, **where(target.kind, namespace)
        )
        for item in answer["items"]:
            meta = item["metadata"]
            found.append((target.kind, meta["name"], meta.get("namespace")))
    if not found:
        session.write_error("No resources found.\n")
    return found


def get_object(
    session: VerbSession, kind: Kind, name: str, namespace: str | None, *, managers: bool = False
) -> dict[str, Any]:
    """Return the object, with its managed fields if requested.

    Raises RpcError; if the object is not found, the message suggests similar names.
    """
    params = {**where(kind, namespace), **({"managed_fields": True} if managers else {})}
    try:
        answer = session.daemon.call("objects.get", kind=kind.name, name=name, **params)
    except RpcError as error:
        raise with_near_name(session, error, kind, name, namespace) from error
    found: dict[str, Any] = answer["object"]
    return found


def with_near_name(session: VerbSession, error: RpcError, kind: Kind, name: str, namespace: str | None) -> RpcError:
    """Return the error.

    If the object was not found, add similar names, or the namespace of an object with this name.
    """
    if error.code != "not_found":
        return error
    everywhere = session.daemon.call("objects.list", kind=kind.name)["items"]
    here = [item for item in everywhere if not kind.namespaced or _namespace(item) == namespace]
    if any(item["metadata"]["name"] == name for item in here):
        return error  # the object exists, so the error has another cause
    elsewhere = [_namespace(item) for item in everywhere if item["metadata"]["name"] == name and item not in here]
    hint = did_you_mean(name, (item["metadata"]["name"] for item in here))
    if elsewhere:
        hint = f"; there is one in namespace {_join(elsewhere)}: add -n {elsewhere[0]}"
    elif not hint and not here:
        place = f" in namespace {namespace}" if kind.namespaced else ""
        hint = f"; there are no {kind.plural}{place} at all"
    return RpcError(error.code, error.message + hint, error.data)


def _namespace(item: dict[str, Any]) -> str:
    return str(item["metadata"].get("namespace", ""))


def _join(names: Iterable[str]) -> str:
    return " and ".join(sorted(set(names))[:3])


def pod_key(word: str, namespace: str | None) -> str:
    """Return `namespace/name` for a pod that is given as web, pod/web or ns/web."""
    first, slash, name = word.partition("/")
    if not slash:
        return f"{namespace or 'default'}/{word}"
    if lookup(first).name == "Pod":
        return f"{namespace or 'default'}/{name}"
    return word
