"""CelEnvironment of an expression: its variables, structured types, libraries and cost limit."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

import attrs

from kschedd.cel.functions.overloads import FUNCTIONS, Overload
from kschedd.cel.macros import BINDINGS, SORTING, STANDARD
from kschedd.cel.syntax import Macros
from kschedd.cel.types import Type, type_of

MOST_COST: Final = 1_000_000
"""The default cost limit of one evaluation."""
BASE: Final = frozenset(("", "lists"))
"""The libraries of Kubernetes' environments: those that every environment has, and `lists` since 1.35."""

Structs = Mapping[str, Mapping[str, str]]
"""Fields of structured types: their types as text, by the name of the type."""

_MACROS: Final[Mapping[str, Macros]] = {"bindings": BINDINGS, "lists": SORTING}


def _no_type(name: str) -> Type | None:
    return None


def _no_field(of_type: Type, field: str) -> Type | None:
    return None


@attrs.frozen(eq=False)
class CelEnvironment:
    variables: Mapping[str, Type]
    structs: Structs = attrs.field(factory=dict)
    libraries: frozenset[str] = BASE
    most_cost: int = MOST_COST
    # types that expressions can name and build, beside the standard ones; any field of them may have any value
    open_type: Callable[[str], Type | None] = _no_type
    field_in_open: Callable[[Type, str], Type | None] = _no_field

    @classmethod
    def of(
        cls,
        variables: Mapping[str, str],
        structs: Structs | None = None,
        libraries: frozenset[str] = BASE,
        most_cost: int = MOST_COST,
    ) -> "CelEnvironment":
        """Return the environment with variables whose types are given as text."""
        typed = {name: type_of(text) for name, text in variables.items()}
        return cls(typed, structs or {}, libraries, most_cost)

    @cached_property
    def macros(self) -> Macros:
        found = dict(STANDARD)
        for library in self.libraries:
            found.update(_MACROS.get(library, {}))
        return found

    def overloads(self, name: str) -> tuple[Overload, ...]:
        return tuple(each for each in FUNCTIONS.get(name, ()) if each.of_library in self.libraries)

    def type_named(self, name: str) -> Type | None:
        return self.open_type(name)

    def has_fields(self, of_type: Type) -> bool:
        """Return whether the structured type is declared with fields; the types of libraries have none."""
        return of_type.name in self.structs or self.open_type(of_type.name) is not None

    def field_of(self, of_type: Type, field: str) -> Type | None:
        """Return the type of a field; None if the structured type does not have the field."""
        fields = self.structs.get(of_type.name)
        if fields is None:
            return self.field_in_open(of_type, field)
        return type_of(fields[field]) if field in fields else None
