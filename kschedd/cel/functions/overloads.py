"""The table of functions and operators: each name with its overloads.

An overload has parameter types, a result type, an implementation and a cost. The checker selects overloads by static
types, and the running program by the types of the values. The first argument of a method is its receiver. Costs are
counted in upstream's units: one per call, or a tenth of the length of each string or list that is traversed.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from kschedd.cel.types import DURATION_NAME, TIMESTAMP_NAME, Type, split_types, type_of


@attrs.frozen(eq=False)
class Overload:
    params: tuple[Type, ...]
    result: Type
    run: Callable[..., Any]
    cost: Callable[..., int] | None  # computed from the arguments before the call; None: 1
    member: bool
    of_library: str  # "": in every environment
    free: tuple[str, ...]  # type parameters
    cost_after: Callable[..., int] | None = None  # computed from the result

    def takes(self, kinds: Sequence[str]) -> bool:
        """Return whether the overload accepts values of these types."""
        if len(kinds) != len(self.params):
            return False
        return all(each.is_open or each.name in ("dyn", given) for given, each in zip(kinds, self.params, strict=True))


COSTED_BY_NAME: Final = frozenset(
    "isSorted sum max min indexOf lastIndexOf url lowerAscii upperAscii substring trim replace split join find findAll "
    "cidr isIP isCIDR ip ip.isCanonical containsIP containsCIDR quantity isQuantity semver isSemver validate check "
    "fieldSelector labelSelector".split()
)
"""Functions whose cost does not depend on the overload; any other function costs 1 if its overload is open."""
_NUMBERS: Final = frozenset(("int", "uint", "double"))
_TIMES: Final = frozenset((TIMESTAMP_NAME, DURATION_NAME))
_COMPARED: Final = _NUMBERS | _TIMES | {"bool", "string", "bytes"}
OPERATED: Final = {
    "_+_": _NUMBERS | _TIMES | {"string", "bytes", "list"},
    "_-_": _NUMBERS | _TIMES,
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": frozenset(("int", "uint")),
    "-_": _NUMBERS,
    "!_": _COMPARED | {"list", "map", "null_type"},
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _COMPARED),
    "size": frozenset(("string", "bytes", "list", "map")),
}
"""Operators, and the types of the first value for which upstream reports a wrong second value."""
FUNCTIONS: Final[dict[str, tuple[Overload, ...]]] = {}


def define(
    name: str,
    params: str,
    result: str,
    run: Callable[..., Any],
    cost: Callable[..., int] | None = None,
    *,
    library: str = "",
    cost_after: Callable[..., int] | None = None,
) -> None:
    """Add an overload. The name of a method begins with a dot."""
    types = tuple(map(type_of, split_types(params)))
    free = tuple(sorted(set().union(*map(_free, types), _free(type_of(result)))))
    member = name.startswith(".")
    made = Overload(types, type_of(result), run, cost, member, library, free, cost_after)
    plain = name.removeprefix(".")
    FUNCTIONS[plain] = (*FUNCTIONS.get(plain, ()), made)


def _free(of_type: Type) -> set[str]:
    if of_type.is_param:
        return {of_type.name}
    return set[str]().union(*map(_free, of_type.params))
