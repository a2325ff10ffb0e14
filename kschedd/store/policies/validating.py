"""ValidatingAdmissionPolicy: the decision of the policies about one write.

Source: Kubernetes v1.37, apiserver/pkg/admission/plugin/policy/validating/{dispatcher,validator}.go.
Errors: PolicyDenied, for a write that a policy rejects.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.go_order import go_json
from kschedd.api.selecting.selectors import SelectorError
from kschedd.cel.values import kind as kind_of_value
from kschedd.store.awaited import WebhookAnswers, evaluated
from kschedd.store.errors import ApiError, PolicyDenied
from kschedd.store.policies.bound import PolicyCache, bound_policies, namespace_of
from kschedd.store.policies.compiled import Composition, Evaluated, Expression, PolicyFailure, compiled, conditions_met
from kschedd.store.policies.environment import BUDGET, request_names
from kschedd.store.policies.params import ConfigurationError, PolicyCluster, collected, param_kind
from kschedd.store.policies.reviewed import Reviewed, matched_resource
from kschedd.store.remarks import Remarks

Raw = Mapping[str, Any]
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
_LONGEST_MESSAGE: Final = 5 * 1024  # octets
_LONGEST_ANNOTATION: Final = 10 * 1024  # octets
_FAILURES: Final = "validation.policy.admission.k8s.io/validation_failure"
_MOST_FAILURES: Final = 50
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


def _fails(policy: Object) -> bool:
    """Return whether a failure of the policy rejects the write."""
    return policy.spec.get("failurePolicy") != "Ignore"


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
            _fails(policy),
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
    place: int = 0  # index of the validation in its policy


@attrs.frozen(eq=False)
class _Judgment:
    """The judgment of the policies about one write so far."""

    denied: list[tuple[str, Denial]] = attrs.field(factory=list)
    audited: list[Raw] = attrs.field(factory=list)  # failures for the audit event


class ValidatingPolicies:
    """The validating policies of a cluster."""

    def __init__(self, cluster: PolicyCluster) -> None:
        self._cluster = cluster
        self._policies = PolicyCache(cluster, POLICY, CompiledPolicy.of)
        self.forget = self._policies.forget

    def validate(self, reviewed: Reviewed, remarks: Remarks, answers: WebhookAnswers | None = None) -> None:
        """Raise PolicyDenied if a policy rejects the write; add warnings and audit annotations to `remarks`.

        Raises WebhooksNeeded if `answers` lacks the result of a long evaluation.
        """
        judgment = _Judgment()
        for policy, bindings in bound_policies(self._cluster, POLICY, BINDING):
            self._judge(policy, bindings, reviewed, remarks, judgment, answers)
        if judgment.audited:
            together = "fields_of_1_37" in self._cluster.features  # earlier releases keep only the first failure
            remarks.annotate(_FAILURES, go_json(judgment.audited[: _MOST_FAILURES if together else 1]))
        if judgment.denied:
            message, denial = judgment.denied[0]
            reason = denial.reason or "Invalid"
            code = _CODES.get(reason, 422)
            raise PolicyDenied(reviewed.kind.name, reviewed.shown_name, message, reason, code, (message,))

    def _judge(
        self,
        policy: Object,
        bindings: Sequence[Object],
        reviewed: Reviewed,
        remarks: Remarks,
        judgment: _Judgment,
        answers: WebhookAnswers | None,
    ) -> None:
        name, denied, fails = policy.name, judgment.denied, _fails(policy)
        begin = f"{POLICY} '{name}'"
        try:
            matched = matched_resource(policy.spec.get("matchConstraints"), reviewed, self._cluster)
            if matched is None:
                return
            kind = param_kind(policy.spec, self._cluster)
        except (ConfigurationError, SelectorError, ApiError) as fault:
            if fails:
                denied.append((f"{begin} denied request: failed to configure policy: {fault}", Denial("")))
            return
        annotations: dict[str, list[str]] = {}
        for binding in bindings:
            before = f"{begin} with binding '{binding.name}' denied request: "
            try:
                if matched_resource(binding.spec.get("matchResources"), reviewed, self._cluster) is None:
                    continue
                params = collected(kind, binding.spec.get("paramRef"), reviewed.namespace, self._cluster)
            except (ConfigurationError, SelectorError, ApiError) as fault:
                if fails:
                    denied.append((f"{before}failed to configure binding: {fault}", Denial("")))
                continue
            namespace = namespace_of(reviewed, self._cluster)
            actions = binding.spec.get("validationActions") or ()
            compiled_policy = self._policies.of(policy, answers)
            for param in params:
                names = request_names(reviewed, matched, param, namespace, self._cluster.rbac)
                what = (POLICY, name, str(policy.resource_version))
                decisions = evaluated(answers, what, names, partial(_decisions, compiled_policy, names))
                for decision in decisions.denials:
                    if "Deny" in actions:
                        denied.append((before + decision.message, decision))
                    if "Audit" in actions:
                        judgment.audited.append(_failure(decision, name, binding.name, actions))
                    if "Warn" in actions:
                        remarks.warn(
                            f"Validation failed for {POLICY} '{name}' with binding '{binding.name}': {decision.message}"
                        )
                denied += [(before + decision.message, decision) for decision in decisions.of_annotations]
                for key, value in decisions.annotations:
                    annotations.setdefault(key, []).append(value)
        for key, values in annotations.items():
            remarks.annotate(f"{name}/{key}", ", ".join(dict.fromkeys(values)))


def _failure(decision: Denial, policy: str, binding: str, actions: Sequence[str]) -> Raw:
    return {
        "message": decision.message,
        "policy": policy,
        "binding": binding,
        "expressionIndex": decision.place,
        "validationActions": list(actions),
    }


@attrs.frozen
class _Decisions:
    """The denials of the validations, those of audit annotations without a valid value, and the annotations."""

    denials: Sequence[Denial] = ()
    of_annotations: Sequence[Denial] = ()
    annotations: Sequence[tuple[str, str]] = ()


def _decisions(policy: CompiledPolicy, names: Mapping[str, Any]) -> _Decisions:
    try:
        if policy.conditions and not conditions_met(policy.composition, policy.conditions, names):
            return _Decisions()
        evaluation = policy.composition.evaluation(names, BUDGET)
        outcomes = [evaluation.outcome(each.expression) for each in policy.validations]
    except PolicyFailure as failure:
        return _Decisions([Denial(str(failure))] if policy.fails else ())
    messages, broken = _messages(policy, names, evaluation.budget)
    found = []
    for place, (validation, outcome) in enumerate(zip(policy.validations, outcomes, strict=True)):
        if outcome.error or broken:
            if policy.fails:
                found.append(Denial(outcome.error or f"failed messageExpression: {broken}", place=place))
        elif outcome.value is not True:
            found.append(Denial(_message(validation, messages.get(place)), validation.reason, place))
    try:
        of_annotations, annotations = _audited(policy, names)
    except PolicyFailure as failure:
        return _Decisions([Denial(str(failure))] if policy.fails else ())
    return _Decisions(found, of_annotations, annotations)


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


def _audited(policy: CompiledPolicy, names: Mapping[str, Any]) -> tuple[list[Denial], list[tuple[str, str]]]:
    """Return the denials of audit annotations without a valid value, and the annotations with one."""
    evaluation = policy.composition.evaluation({**names, "authorizer": None}, BUDGET)
    wrong, found = [], []
    for annotation in policy.annotations:
        outcome = evaluation.outcome(annotation.expression)
        if outcome.error:
            wrong += [outcome.error] if policy.fails else []
        elif isinstance(outcome.value, str):
            text = outcome.value.strip().encode(errors="replace")[:_LONGEST_ANNOTATION].decode(errors="replace")
            found += [(annotation.key, text)] if text else []
        elif outcome.value is not None:
            wrong.append(
                f"valueExpression '{annotation.expression.text}' resulted in unsupported return type: "
                f"{kind_of_value(outcome.value)}. Return type must be either string or null."
            )
    return [Denial(why) for why in wrong], found
