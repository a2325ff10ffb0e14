"""Expressions of a policy: compiled with the policy's variables, and evaluated within its cost limit.

Source: Kubernetes v1.37, apiserver/pkg/admission/plugin/cel/{condition,activation,composition}.go,
plugin/webhook/matchconditions/matcher.go.
Errors: PolicyFailure, if no further expression may be evaluated.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.cel.environment import CelEnvironment
from kschedd.cel.errors import CelCompileError, CelFailure
from kschedd.cel.program import Program, compile_expression
from kschedd.cel.run import Lazy
from kschedd.errors import KscheddError
from kschedd.store.policies.environment import CONDITIONS_BUDGET, ObjectTypes, declared, policy_environment

Raw = Mapping[str, Any]
_DEEPEST_TYPE: Final = 64  # variables can nest types without end, which recursive functions traverse
OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


@attrs.define(eq=False)
class PolicyFailure(KscheddError):
    """An evaluation that ended before its last expression."""

    why: str


@attrs.frozen(eq=False)
class Expression:
    """A compiled expression, or the reason why it does not compile."""

    text: str
    program: Program | None
    why: str = ""


@attrs.frozen
class Evaluated:
    """The value of an expression, or its error."""

    value: Any = None
    error: str = ""


def compiled(text: str, environment: CelEnvironment, wanted: Sequence[str]) -> Expression:
    """Compile an expression whose value must have one of these types; an empty sequence allows any type."""
    try:
        program = compile_expression(text, environment)
    except CelCompileError as fault:
        return Expression(text, None, fault.detail)
    found = str(program.type)
    if found.count("(") > _DEEPEST_TYPE:
        return Expression(text, None, f"the type of its value is nested more than {_DEEPEST_TYPE} levels deep")
    if not wanted or found in wanted:
        return Expression(text, program)
    kinds = wanted[0] if len(wanted) == 1 else f"one of [{' '.join(wanted)}]"
    return Expression(text, None, f"must evaluate to {kinds} but got {found}")


@attrs.define(eq=False)
class Composition:
    """The variables of a policy, and the environments of its expressions."""

    features: frozenset[str]
    params: bool
    object_types: ObjectTypes | None = None  # None: objects have any type
    expressions: dict[str, Expression] = attrs.field(factory=dict)
    _types: dict[str, str] = attrs.field(factory=dict)  # of the variables; shared by the environments
    _environments: dict[tuple[bool, bool], CelEnvironment] = attrs.field(factory=dict)

    def environment(self, *, authorizer: bool = True, patches: bool = False) -> CelEnvironment:
        known = self._environments.get((authorizer, patches))
        if known is None:
            known = policy_environment(
                self._types,
                self.features,
                params=self.params,
                authorizer=authorizer,
                patches=patches,
                types=self.object_types,
            )
            self._environments[authorizer, patches] = known
        return known

    def add(self, name: str, text: str, *, patches: bool = False) -> Expression:
        """Compile a variable, which later expressions may use."""
        found = compiled(text, self.environment(patches=patches), ())
        self._types[name] = declared("dyn" if found.program is None else str(found.program.type))
        self.expressions[name] = found
        return found

    def evaluation(self, names: Mapping[str, Any], budget: int) -> "PolicyEvaluation":
        return PolicyEvaluation(self, names, budget)


class PolicyEvaluation:
    """The evaluation of a list of expressions. Each variable is computed at most once, when it is first used."""

    def __init__(self, composition: Composition, names: Mapping[str, Any], budget: int) -> None:
        self.budget = budget
        self._of_variables = 0
        computed: dict[str, Callable[[], Any]] = {
            name: partial(self._variable, name, each) for name, each in composition.expressions.items()
        }
        self._names = {**names, "variables": Lazy(computed, "kubernetes.variables")}

    def _variable(self, name: str, expression: Expression) -> Any:
        if expression.program is None:
            raise CelFailure(f'composited variable "{name}" fails to compile: {expression.why}')
        value, cost, failure = expression.program.run(self._names)
        self._of_variables += cost
        if failure is not None:
            raise CelFailure(f'composited variable "{name}" fails to evaluate: {failure}')
        return value

    def outcome(self, expression: Expression) -> Evaluated:
        """Evaluate an expression. Raises PolicyFailure if the cost limit of the policy is exceeded."""
        if expression.program is None:
            return Evaluated(error=f"compilation error: {expression.why}")
        value, cost, failure = expression.program.run(self._names)
        self.budget -= self._of_variables + cost
        self._of_variables = 0
        if self.budget < 0:
            raise PolicyFailure(OUT_OF_BUDGET)
        if failure is not None:
            return Evaluated(error=f"expression '{expression.text}' resulted in error: {failure}")
        return Evaluated(value)


def conditions_met(
    composition: Composition, conditions: Sequence[tuple[str, Expression]], names: Mapping[str, Any]
) -> bool:
    """Return whether all match conditions are true.

    Raises PolicyFailure if no condition is false, but some conditions cannot be evaluated.
    """
    evaluation = composition.evaluation({**names, "namespaceObject": None}, CONDITIONS_BUDGET)
    outcomes = [evaluation.outcome(each) for _, each in conditions]
    if any(outcome.value is False and not outcome.error for outcome in outcomes):
        return False
    errors = list(dict.fromkeys(outcome.error for outcome in outcomes if outcome.error))
    if errors:
        raise PolicyFailure(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return True
