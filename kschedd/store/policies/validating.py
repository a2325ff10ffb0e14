"""ValidatingAdmissionPolicy: the decision of the policies about one write.

Source: Kubernetes v1.37, apiserver/pkg/admission/plugin/policy/validating/{dispatcher,validator}.go.
Errors: PolicyDenied, for a write that a policy rejects.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.selecting.selectors import SelectorError
from kschedd.cel.values import kind as kind_of_value
from kschedd.store.awaited import WebhookAnswers, evaluated
from kschedd.store.errors import ApiError, PolicyDenied
from kschedd.store.policies.bound import PolicyCache, bound_policies, namespace_of
from kschedd.store.policies.compiled import Composition, Evaluated, Expression, PolicyFailure, compiled, conditions_met
from kschedd.store.policies.environment import BUDGET, request_names
from kschedd.store.policies.params import ConfigurationError, PolicyCluster, collected, param_kind
from kschedd.store.policies.reviewed import Reviewed, matched_resource

Raw = Mapping[str, Any]
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
_LONGEST_MESSAGE: Final = 5 * 1024  # octets
_CODES: Final = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}


@attrs.frozen(eq=False)
class Validation:
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@attrs.frozen(eq=False)
class AuditAnnotation:
    key: str
    expression: Expression


@attrs.frozen(eq=False)
class CompiledPolicy:
    """A policy with its compiled expressions."""

    source: Object
    fails: bool  # failurePolicy is Fail
    composition: Composition
    conditions: Sequence[tuple[str, Expression]]
    validations: Sequence[Validation]
    annotations: Sequence[AuditAnnotation]

    @classmethod
    def of(cls, policy: Object, features: frozenset[str]) -> "CompiledPolicy":
        spec = policy.spec
        composition = Composition(features, spec.get("paramKind") is not None)
        for variable in spec.get("variables") or ():
            composition.add(variable["name"], variable["expression"])
        whole, without = composition.environment(), composition.environment(authorizer=False)
        return cls(
            policy,
            spec.get("failurePolicy") != "Ignore",
            composition,
            [
                (each["name"], compiled(each["expression"], whole, ("bool",)))
                for each in spec.get("matchConditions") or ()
            ],
            [
                Validation(
                    compiled(each["expression"], whole, ("bool",)),
                    each.get("message") or "",
                    compiled(text, without, ("string",)) if (text := each.get("messageExpression")) else None,
                    each.get("reason") or "Invalid",
                )
                for each in spec.get("validations") or ()
            ],
            [
                AuditAnnotation(each["key"], compiled(each["valueExpression"], whole, ("string", "null_type")))
                for each in spec.get("auditAnnotations") or ()
            ],
        )


@attrs.frozen
class Denial:
    message: str
    reason: str = ""


class ValidatingPolicies:
    """The validating policies of a cluster."""

    def __init__(self, cluster: PolicyCluster) -> None:
        self._cluster = cluster
        self._policies = PolicyCache(cluster, POLICY, CompiledPolicy.of)
        self.forget = self._policies.forget

    def validate(self, reviewed: Reviewed, warn: Callable[[str], None], answers: WebhookAnswers | None = None) -> None:
        """Raise PolicyDenied if a policy rejects the write; pass the messages of bindings that only warn to `warn`.

        Raises WebhooksNeeded if `answers` lacks the result of a long evaluation.
        """
        denied: list[tuple[str, Denial]] = []
        for policy, bindings in bound_policies(self._cluster, POLICY, BINDING):
            denied += self._by_policy(self._policies.of(policy), bindings, reviewed, warn, answers)
        if denied:
            message, denial = denied[0]
            reason = denial.reason or "Invalid"
            code = _CODES.get(reason, 422)
            raise PolicyDenied(reviewed.kind.name, reviewed.shown_name, message, reason, code, (message,))

    def _by_policy(
        self,
        policy: CompiledPolicy,
        bindings: Sequence[Object],
        reviewed: Reviewed,
        warn: Callable[[str], None],
        answers: WebhookAnswers | None,
    ) -> list[tuple[str, Denial]]:
        name = policy.source.name
        begin = f"{POLICY} '{name}'"
        try:
            matched = matched_resource(policy.source.spec.get("matchConstraints"), reviewed, self._cluster)
            if matched is None:
                return []
            kind = param_kind(policy.source.spec, self._cluster)
        except (ConfigurationError, SelectorError, ApiError) as fault:
            return (
                [(f"{begin} denied request: failed to configure policy: {fault}", Denial(""))] if policy.fails else []
            )
        denied: list[tuple[str, Denial]] = []
        for binding in bindings:
            before = f"{begin} with binding '{binding.name}' denied request: "
            try:
                if matched_resource(binding.spec.get("matchResources"), reviewed, self._cluster) is None:
                    continue
                params = collected(kind, binding.spec.get("paramRef"), reviewed.namespace, self._cluster)
            except (ConfigurationError, SelectorError, ApiError) as fault:
                if policy.fails:
                    denied.append((f"{before}failed to configure binding: {fault}", Denial("")))
                continue
            namespace = namespace_of(reviewed, self._cluster)
            actions = binding.spec.get("validationActions") or ()
            for param in params:
                names = request_names(reviewed, matched, param, namespace, self._cluster.rbac)
                what = (POLICY, name, str(policy.source.resource_version))
                decided, audited = evaluated(answers, what, names, partial(_decisions, policy, names))
                for decision in decided:
                    if "Deny" in actions:
                        denied.append((before + decision.message, decision))
                    if "Warn" in actions:
                        warn(
                            f"Validation failed for {POLICY} '{name}' with binding '{binding.name}': {decision.message}"
                        )
                denied += [(before + decision.message, decision) for decision in audited]
        return denied


def _decisions(policy: CompiledPolicy, names: Mapping[str, Any]) -> tuple[list[Denial], list[Denial]]:
    """Return the denials of the validations, and those of audit annotations without a value."""
    try:
        if policy.conditions and not conditions_met(policy.composition, policy.conditions, names):
            return [], []
        evaluation = policy.composition.evaluation(names, BUDGET)
        outcomes = [evaluation.outcome(each.expression) for each in policy.validations]
    except PolicyFailure as failure:
        return ([Denial(str(failure))] if policy.fails else []), []
    messages, broken = _messages(policy, names, evaluation.budget)
    found = []
    for place, (validation, outcome) in enumerate(zip(policy.validations, outcomes, strict=True)):
        if outcome.error or broken:
            if policy.fails:
                found.append(Denial(outcome.error or f"failed messageExpression: {broken}"))
        elif outcome.value is not True:
            found.append(Denial(_message(validation, messages.get(place)), validation.reason))
    try:
        audited = _audited(policy, names)
    except PolicyFailure as failure:
        return ([Denial(str(failure))] if policy.fails else []), []
    return found, audited


def _messages(policy: CompiledPolicy, names: Mapping[str, Any], budget: int) -> tuple[dict[int, Evaluated], str]:
    """Return the outcomes of the message expressions, by place, and the failure that ended their evaluation."""
    evaluation = policy.composition.evaluation(names, budget)
    found: dict[int, Evaluated] = {}
    try:
        for place, validation in enumerate(policy.validations):
            if validation.message_expression is not None:
                found[place] = evaluation.outcome(validation.message_expression)
    except PolicyFailure as failure:
        return {}, str(failure)
    return found, ""


def _message(validation: Validation, outcome: Evaluated | None) -> str:
    if outcome is not None and not outcome.error and isinstance(outcome.value, str):
        text = outcome.value.strip()
        if text and "\n" not in text and len(text.encode(errors="replace")) <= _LONGEST_MESSAGE:
            return text
    return validation.message.strip() or f"failed expression: {validation.expression.text.strip()}"


def _audited(policy: CompiledPolicy, names: Mapping[str, Any]) -> list[Denial]:
    """Evaluate the audit annotations. Return the denials of audit annotations without a valid value."""
    evaluation = policy.composition.evaluation({**names, "authorizer": None}, BUDGET)
    found = []
    for annotation in policy.annotations:
        outcome = evaluation.outcome(annotation.expression)
        if outcome.error:
            found.append(outcome.error)
        elif outcome.value is not None and not isinstance(outcome.value, str):
            found.append(
                f"valueExpression '{annotation.expression.text}' resulted in unsupported return type: "
                f"{kind_of_value(outcome.value)}. Return type must be either string or null."
            )
    return [Denial(why) for why in found] if policy.fails else []
