"""What there is to complete, as an immutable value: kinds, names of live objects, label keys, profiles and plugins.

The completer reads it in the prompt's thread; a task puts a new one in its place when objects have come or gone.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.api.kinds import KINDS
from kschedd.rpc.client import Client
from kschedd.rpc.errors import RpcError

MOST_NAMES = 2000  # of one kind: more are no help to anybody, and cost the daemon time


@attrs.frozen
class Names:
    """`objects` is kind -> "namespace/name" ("/name" outside namespaces), sorted."""

    kinds: tuple[str, ...] = tuple(kind.plural for kind in KINDS)
    objects: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    label_keys: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    labels: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)  # kind -> "key=value"
    profiles: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()

    def of(self, kind: str, namespace: str) -> list[str]:
        """The names to choose from in a namespace."""
        found = []
        for key in self.objects.get(kind, ()):
            where, _, name = key.partition("/")
            if where in ("", namespace):
                found.append(name)
        return found

    @property
    def namespaces(self) -> list[str]:
        return [key.partition("/")[2] for key in self.objects.get("Namespace", ())]


async def current_names(client: Client, before: Names) -> Names:
    """The names as they are now; `before` itself where no object came or went since."""
    kinds = await client.call("objects.kinds")
    counts = tuple(sorted((str(kind["name"]), int(kind.get("count") or 0)) for kind in kinds))
    known = dict(before.counts)
    objects, keys, labels = dict(before.objects), dict(before.label_keys), dict(before.labels)
    for name, count in counts:
        if count == 0:
            for table in (objects, keys, labels):
                table.pop(name, None)
        elif count <= MOST_NAMES and (known.get(name) != count or count <= 100):
            items = (await client.call("objects.list", kind=name))["items"]
            objects[name], keys[name], labels[name] = _taken(items)
    plurals = tuple(sorted({*Names().kinds, *(str(kind.get("plural") or kind["name"]) for kind in kinds)}))
    profiles, plugins = before.profiles, before.plugins
    if not profiles:
        profiles, plugins = await _configured(client)
    return Names(plurals, objects, keys, labels, profiles, plugins, counts)


def _taken(items: list[dict[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Names, label keys and labels."""
    names, keys, labels = set(), set(), set()
    for item in items:
        meta = item.get("metadata") or {}
        names.add(f"{meta.get('namespace') or ''}/{meta.get('name', '')}")
        for key, value in (meta.get("labels") or {}).items():
            keys.add(str(key))
            labels.add(f"{key}={value}")
    return tuple(sorted(names)), tuple(sorted(keys)), tuple(sorted(labels))


async def _configured(client: Client) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from kschedd.printing.scheduling import weights_table

    try:
        rows = weights_table(await client.call("scheduler.config")).rows
    except (RpcError, KeyError, TypeError, AttributeError):
        return (), ()
    return tuple(dict.fromkeys(row[0] for row in rows)), tuple(dict.fromkeys(row[1] for row in rows))
