"""Resolution of names in calls to kinds and objects of the store."""

from kschedd.api.objects import Object
from kschedd.api.schemas.kinds import BY_NAME, KINDS, Kind, kind_of, lookup
from kschedd.api.text.similar import quoted, similar_names
from kschedd.service.cluster import ClusterBackend
from kschedd.service.errors import RpcError
from kschedd.service.objects.answers import KindAnswer
from kschedd.service.operations.components import COMPONENT_STATUS
from kschedd.service.table import Call
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.custom_resources.kinds import defined_kind, definitions


def custom_kinds(store: ClusterReader) -> list[Kind]:
    """Return the kinds that are not built in: with a definition, or without one but with objects; ComponentStatus."""
    found = {kind.name: kind for kind in map(defined_kind, definitions(store))}
    for name in store.kinds():
        if name not in BY_NAME and name not in found:
            found[name] = kind_of(store.list(name)[0].raw)
    return [*found.values(), COMPONENT_STATUS]


def find_kind(store: ClusterReader, word: str) -> Kind:
    """Return the kind for `word`: the kind's name, plural, singular or short name.

    Raises RpcError `not_found`.
    """
    kind = lookup(word)
    if kind.known:
        return kind
    others = custom_kinds(store)
    named = word.lower()
    for other in others:
        if word == other.name:  # the name is unique
            return other
    for other in others:  # if several kinds have this plural, built-in kinds are first
        names = {other.name.lower(), other.plural, other.singular, *other.short}
        names |= {f"{name}.{other.group}" for name in names if other.group}
        if named in names or named in {name.partition(".")[0] for name in names}:
            return other
    known = [name for kind in (*KINDS, *others) for name in (kind.name, kind.plural, *kind.short)]
    close = similar_names(word, known)
    hint = f"; did you mean {' or '.join(map(quoted, close))}?" if close else ""
    raise RpcError("not_found", f'there is no kind "{word[:100]}"{hint}', {"kind": word[:100], "did_you_mean": close})


async def kind_meant(cluster: ClusterBackend, word: str) -> Kind:
    """Return the kind for `word`; a built-in kind needs no call to the store. Raises RpcError `not_found`."""
    kind = lookup(word)
    return kind if kind.known else await cluster.store.do(lambda store: find_kind(store, word))


def resolve_namespace(kind: Kind, namespace: str | None) -> str:
    """Return the namespace of an object of this kind; `namespace` is the parameter of the call."""
    return (namespace or "default") if kind.namespaced else ""


def described(store: ClusterReader) -> list[KindAnswer]:
    """Return every kind, each with its number of objects."""
    return [
        KindAnswer(
            kind.name,
            kind.plural,
            kind.singular,
            kind.short,
            kind.api_version,
            kind.namespaced,
            kind.known,
            store.count(kind.name),
        )
        for kind in (*KINDS, *custom_kinds(store))
    ]


def named_object(call: Call, store: ClusterReader) -> Object:
    """Return the object that a call names. Raises RpcError and NotFound."""
    kind = find_kind(store, call["kind"])
    return store.get(kind.name, resolve_namespace(kind, call["namespace"]), call["name"])
