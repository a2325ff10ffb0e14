"""JSON patches (RFC 6902): add, remove, replace, move, copy and test, with the extensions of the API server.

Beyond the RFC, the API server's library accepts negative indices and indices such as `01`, allows `replace` of a map
member that does not exist, and treats a missing member as null. So does this module. For a failed operation,
kube-apiserver only reports a bad request; kschedd's message also contains the operation and the reason.

The input document is not modified. The nesting limit of manifests also applies to values, so that every stored object
can be read again. As in kube-apiserver, the total size of all copies in a patch is limited in bytes; kschedd also
limits their number of values. Each copy is measured before it is created. `move` copies nothing.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers/patch.go; github.com/evanphx/json-patch v4. Raises: BadPatch.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.schemas.unmarshal_errors import json_kind
from kschedd.api.text.json_text import DEEPEST
from kschedd.store.errors import BadPatch

MOST_OPERATIONS: Final = 10_000
MOST_COPIED: Final = 3 << 20  # maximum total size of all copies in a patch, in bytes of JSON
# maximum number of copied values; an empty list has two bytes of JSON but needs far more memory
MOST_COPIED_VALUES: Final = 100_000
_SHIFTED: Final = 6  # shifting 2 ** 6 list items costs as much as copying one value
REJECTED: Final = "the server rejected our request due to an error in our request"
_MEMBERS: Final = ("op", "path", "from", "value")
_CONTAINERS: Final = (dict, list, tuple)
_INDEX: Final = re.compile(r"[-+]?\d+", re.ASCII)


class _Failed(Exception):
    """An operation that cannot be applied."""


@attrs.define(eq=False)
class _Budget:
    """The remaining work that the operations of one patch may cause, without reading the patch.

    `deepest` is an upper bound of the nesting depth of the document. A moved value is measured only if this bound
    allows the value to exceed DEEPEST levels.
    """

    deepest: int
    bytes: int = MOST_COPIED
    values: int = MOST_COPIED_VALUES

    def copied(self, path: str, value: Any) -> Any:
        """Return a copy of a value of the document, to be set at this path."""
        self._measure(path, value)
        size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))
        self.bytes -= size
        if self.bytes < 0:
            raise _Failed(f"this patch copies {MOST_COPIED - self.bytes} bytes or more; {_LIMITS}")
        return _copy(value)

    def move(self, source: str, path: str, value: Any) -> None:
        """Check that a value of the document may be moved from `source` to `path`."""
        deepest = self.deepest + path.count("/") - source.count("/")
        if deepest > DEEPEST:
            self._measure(path, value)
        else:
            self.deepest = max(self.deepest, deepest)

    def set(self, path: str, value: Any) -> Any:
        """Return a copy of a value of the patch, to be set at this path."""
        _, height = _measured(value, DEEPEST - path.count("/"), None)
        self.deepest = max(self.deepest, path.count("/") + height)
        return _copy(value)

    def shift(self, items: int) -> None:
        """Add the cost of shifting the items that follow an inserted or removed list item."""
        self._spend(items >> _SHIFTED)

    def _measure(self, path: str, value: Any) -> None:
        count, height = _measured(value, DEEPEST - path.count("/"), self.values)
        self._spend(count)
        self.deepest = max(self.deepest, path.count("/") + height)

    def _spend(self, values: int) -> None:
        self.values -= values
        if self.values < 0:
            raise _Failed(f"the patch copies or moves too many values; {_LIMITS}")


_LIMITS: Final = f"at most {MOST_COPIED} bytes and {MOST_COPIED_VALUES} values are allowed"


def json_patch(live: Any, operations: Sequence[Any], touched: list[dict[str, Any]] | None = None) -> Any:
    """Return `live` with the operations applied in order. Raises BadPatch.

    `touched` receives the maps of the result that the operations visited.
    """
    if len(operations) > MOST_OPERATIONS:
        most = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}"
        raise BadPatch(most)
    whole = [_copy(live)]
    budget = _Budget(_measured(live, None, None)[1])
    seen: list[dict[str, Any]] = [] if touched is None else touched
    for number, operation in enumerate(operations):
        if not isinstance(operation, Mapping):
            raise BadPatch(
                f"error decoding patch: json: cannot unmarshal {json_kind(operation)} into Go value of type "
                "handlers.jsonPatchOp"
            )
        try:
            _apply(whole, operation, seen, budget)
        except _Failed as why:
            name, path = operation.get("op"), operation.get("path")
            raise BadPatch(f"{REJECTED}: [{number}] {name} {path}: {why}") from None
    return whole[0]


def unknown_members(operations: Sequence[Any]) -> list[str]:
    """Return warnings for unknown members of the operations, with the API server's messages."""
    return [
        f'json patch unknown field "[{number}].{name}"'
        for number, operation in enumerate(operations)
        if isinstance(operation, Mapping)
        for name in operation
        if name not in _MEMBERS
    ]


def copies(patch: Any) -> int:
    """Return the number of copy operations in a JSON patch; each may double the document."""
    if not isinstance(patch, list):
        return 0
    return sum(1 for each in patch if isinstance(each, Mapping) and each.get("op") == "copy")


def _apply(whole: list[Any], operation: Mapping[str, Any], seen: list[dict[str, Any]], budget: _Budget) -> None:
    path = _text(operation, "path")
    match operation.get("op"):
        case "add":
            _add(whole, seen, path, budget.set(path, operation.get("value")), budget)
        case "remove":
            _remove(whole, seen, path, budget)
        case "replace":
            _replace(whole, seen, path, budget.set(path, operation.get("value")))
        case "move":
            source = _text(operation, "from")
            value = _get(whole, seen, source)
            budget.move(source, path, value)
            _remove(whole, seen, source, budget)
            _add(whole, seen, path, value, budget)
        case "copy":
            _add(whole, seen, path, budget.copied(path, _get(whole, seen, _text(operation, "from"))), budget)
        case "test":
            found = _get(whole, seen, path, whole_too=True)
            if not _equal(found, operation.get("value")):
                raise _Failed("the value differs")
            seen += _maps_of(found)
        case other:
            raise _Failed(f"unknown operation {other!r}")


def _text(operation: Mapping[str, Any], member: str) -> str:
    value = operation.get(member)
    if not isinstance(value, str):
        raise _Failed(f"{member} is missing" if value is None else f"{member} must be a string")
    return value


def _place(whole: list[Any], seen: list[dict[str, Any]], path: str) -> tuple[Any, str]:
    """Return the map or list that contains the last member of the path, and the member's name."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")]
    if len(steps) < 2:
        raise _Failed('the path must begin with "/" and name a member')
    holder = whole[0]
    for step in steps[1:-1]:
        found = _member(holder, step)
        if not isinstance(found, dict | list):
            raise _Failed(f'"{step}" in the path is not a map or list')
        holder = found
        if isinstance(holder, dict):
            seen.append(holder)
    if not isinstance(holder, dict | list):
        raise _Failed("the parent is not a map or list")
    return holder, steps[-1]


def _member(holder: Any, step: str) -> Any:
    return holder.get(step) if isinstance(holder, dict) else holder[_at(step, len(holder))]


def _at(step: str, size: int) -> int:
    if not _INDEX.fullmatch(step) or len(step) > 20:
        raise _Failed(f'"{step}" is not a list index')
    index = int(step)
    if not -size <= index < size:
        raise _Failed(f"index {index} is out of range; the list has {size} items")
    return index % size


def _get(whole: list[Any], seen: list[dict[str, Any]], path: str, *, whole_too: bool = False) -> Any:
    if whole_too and not path:
        return whole[0]
    holder, step = _place(whole, seen, path)
    return _member(holder, step)


def _add(whole: list[Any], seen: list[dict[str, Any]], path: str, value: Any, budget: _Budget) -> None:
    holder, step = _place(whole, seen, path)
    if isinstance(holder, dict):
        holder[step] = value
    elif step == "-":
        holder.append(value)
    else:
        at = _at(step, len(holder) + 1)
        budget.shift(len(holder) - at)
        holder.insert(at, value)


def _remove(whole: list[Any], seen: list[dict[str, Any]], path: str, budget: _Budget) -> None:
    holder, step = _place(whole, seen, path)
    if isinstance(holder, list):
        at = _at(step, len(holder))
        budget.shift(len(holder) - at)
        del holder[at]
    elif step in holder:
        del holder[step]
    else:
        raise _Failed("the path does not exist")


def _replace(whole: list[Any], seen: list[dict[str, Any]], path: str, value: Any) -> None:
    if not path:
        # replacing the whole document by a scalar has no effect
        whole[0] = value if isinstance(value, dict | list) else whole[0]
        return
    holder, step = _place(whole, seen, path)
    if isinstance(holder, dict):
        holder[step] = value
    else:
        holder[_at(step, len(holder))] = value


def _equal(found: Any, wanted: Any) -> bool:
    if isinstance(found, dict) and isinstance(wanted, Mapping):
        return found.keys() == wanted.keys() and all(_equal(found[name], wanted[name]) for name in found)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_equal, found, wanted))
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


def _maps_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the value, if it is a map, and all maps within it."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _maps_of(each)


def _measured(value: Any, levels: int | None, most: int | None) -> tuple[int, int]:
    """Return the number of values in `value`, including `value` itself, and the number of levels of its maps and lists.

    Counting stops when the number of values exceeds `most`. Raises _Failed if there are more than `levels` levels.
    """
    count, height = 1, 0
    level = [value] if isinstance(value, _CONTAINERS) else []
    while level:
        height += 1
        if levels is not None and height > levels:
            raise _Failed(f"nested more than {DEEPEST} levels deep")
        count += sum(map(len, level))
        if most is not None and count > most:
            break
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, _CONTAINERS)
        ]
    return count, height


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copy(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(item) for item in value]
    return value
