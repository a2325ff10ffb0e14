"""MutatingAdmissionPolicy: the changes of the policies to one write.

Policies run in the order of their names. After a change, the policies with the reinvocationPolicy IfNeeded that ran
before it run once more (`kschedd.store.admission.reviewing`).

Source: Kubernetes v1.37, apiserver/pkg/admission/plugin/policy/mutating/{dispatcher,reinvocationcontext}.go,
plugin/policy/generic/policy_dispatcher.go.
Errors: PolicyDenied.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.codec import decoded_object, encoded_object
from kschedd.api.selecting.selectors import SelectorError
from kschedd.registry.defaults import default_typed
from kschedd.store.awaited import WebhookAnswers, evaluated
from kschedd.store.errors import ApiError, PolicyDenied
from kschedd.store.policies.bound import PolicyCache, bound_policies, namespace_of
from kschedd.store.policies.compiled import (
    Composition,
    Evaluated,
    Expression,
    PolicyFailure,
    compiled,
    conditions_met,
)
from kschedd.store.policies.environment import BUDGET, request_names
from kschedd.store.policies.params import ConfigurationError, PolicyCluster, collected, param_kind
from kschedd.store.policies.patching import PatchFault, applied_configuration, patched_by_json
from kschedd.store.policies.reviewed import Reviewed, ReviewedResource, matched_resource

Raw = Mapping[str, Any]
POLICY: Final = "MutatingAdmissionPolicy"
BINDING: Final = "MutatingAdmissionPolicyBinding"
_APPLY: Final = "ApplyConfiguration"
Key = tuple[str, str, str, str]
"""The names of a policy and a binding, and the namespace and the name of a parameter."""


@attrs.frozen(eq=False)
class CompiledMutations:
    """A policy with its compiled expressions."""

    source: Object
    composition: Composition
    conditions: Sequence[tuple[str, Expression]]
    mutations: Sequence[tuple[bool, Expression]]  # True: an apply configuration, False: a JSON patch

    @classmethod
    def of(cls, policy: Object, features: frozenset[str]) -> "CompiledMutations":
        spec = policy.spec
        composition = Composition(features, spec.get("paramKind") is not None)
        for variable in spec.get("variables") or ():
            composition.add(variable["name"], variable["expression"], patches=True)
        plain, patches = composition.environment(), composition.environment(patches=True)
        mutations = []
        for each in spec.get("mutations") or ():
            applies = each.get("patchType") == _APPLY
            part, wanted = ("applyConfiguration", "Object") if applies else ("jsonPatch", "list(JSONPatch)")
            mutations.append((applies, compiled(each[part]["expression"].strip(), patches, (wanted,))))
        conditions = spec.get("matchConditions") or ()
        return cls(
            policy,
            composition,
            [(each["name"], compiled(each["expression"].strip(), plain, ("bool",))) for each in conditions],
            mutations,
        )


@attrs.frozen(eq=False)
class Invocation:
    """A policy with a binding and a parameter that select the request."""

    policy: CompiledMutations
    binding: str
    matched: ReviewedResource
    param: Raw | None

    @property
    def key(self) -> Key:
        meta = (self.param or {}).get("metadata") or {}
        return self.policy.source.name, self.binding, str(meta.get("namespace") or ""), str(meta.get("name") or "")


@attrs.define(eq=False)
class _Errors:
    """The errors of policies that reject the request, with their reasons."""

    found: list[tuple[str, str]] = attrs.field(factory=list)

    def add(self, policy: Object, binding: str, why: str, reason: str = "") -> None:
        if policy.spec.get("failurePolicy") == "Ignore":
            return
        shown = f"policy '{policy.name}' with binding '{binding}'" if binding else f'policy "{policy.name}"'
        self.found.append((f"{shown} denied request: {why}", reason))


class MutatingPolicies:
    """The mutating policies of a cluster."""

    def __init__(self, cluster: PolicyCluster) -> None:
        self._cluster = cluster
        self._policies = PolicyCache(cluster, POLICY, CompiledMutations.of)
        self.forget = self._policies.forget

    def mutated(
        self,
        reviewed: Reviewed,
        before: set[Key],
        again: set[Key],
        only: set[Key] | None,
        answers: WebhookAnswers | None = None,
    ) -> Raw:
        """Return the object after the policies, or after those in `only`.

        The keys of invoked reinvocable policies are added to `before`; a later change of the object moves these keys to
        `again`. Raises PolicyDenied, and WebhooksNeeded if `answers` lacks the result of a long evaluation.
        """
        errors = _Errors()
        namespace = namespace_of(reviewed, self._cluster)
        whole = reviewed.new
        assert whole is not None, "only creations and updates are mutated"
        for invocation in self._invocations(reviewed, errors, answers):
            if only is not None and invocation.key not in only:
                continue
            seen = attrs.evolve(reviewed, new=whole)
            result = self._mutate(invocation, seen, namespace, errors, answers)
            if result is None:
                continue
            if result != whole:
                again |= before
                before.clear()
                whole = result
            if invocation.policy.source.spec.get("reinvocationPolicy") == "IfNeeded":
                before.add(invocation.key)
        if errors.found:
            why, reason = errors.found[0]
            causes = tuple(each for each, _ in errors.found)
            raise PolicyDenied(
                reviewed.kind.name, reviewed.shown_name, why, reason or "Forbidden", 403, causes, whole=True
            )
        return whole

    def _invocations(self, reviewed: Reviewed, errors: _Errors, answers: WebhookAnswers | None) -> list[Invocation]:
        found: list[Invocation] = []
        for policy, bindings in bound_policies(self._cluster, POLICY, BINDING):
            found += self._of_policy(policy, bindings, reviewed, errors, answers)
        return found

    def _of_policy(
        self,
        policy: Object,
        bindings: Sequence[Object],
        reviewed: Reviewed,
        errors: _Errors,
        answers: WebhookAnswers | None,
    ) -> list[Invocation]:
        try:
            matched = matched_resource(policy.spec.get("matchConstraints"), reviewed, self._cluster)
            if matched is None:
                return []
            kind = param_kind(policy.spec, self._cluster)
        except (ConfigurationError, SelectorError, ApiError) as fault:
            errors.add(policy, "", f"failed to configure policy: {fault}")
            return []
        found = []
        for binding in bindings:
            try:
                if matched_resource(binding.spec.get("matchResources"), reviewed, self._cluster) is None:
                    continue
                params = collected(kind, binding.spec.get("paramRef"), reviewed.namespace, self._cluster)
            except (ConfigurationError, SelectorError, ApiError) as fault:
                errors.add(policy, binding.name, f"failed to configure binding: {fault}")
                continue
            known = self._policies.of(policy, answers)
            found += [Invocation(known, binding.name, matched, param) for param in params]
        return found

    def _mutate(
        self,
        invocation: Invocation,
        reviewed: Reviewed,
        namespace: Raw | None,
        errors: _Errors,
        answers: WebhookAnswers | None,
    ) -> Raw | None:
        """Return the object after one policy; None if its match conditions are not met, or fail."""
        policy = invocation.policy
        names = request_names(reviewed, invocation.matched, invocation.param, namespace, self._cluster.rbac)
        try:
            what = (POLICY, policy.source.name, str(policy.source.resource_version))
            met = partial(conditions_met, policy.composition, policy.conditions, names)
            if policy.conditions and not evaluated(answers, what, names, met):
                return None
        except PolicyFailure as failure:
            errors.add(policy.source, invocation.binding, str(failure), "Invalid")
            return None
        whole = reviewed.new
        assert whole is not None, "only creations and updates are mutated"
        stated = whole.get("apiVersion")
        for applies, expression in policy.mutations:
            try:
                names = request_names(
                    attrs.evolve(reviewed, new=whole),
                    invocation.matched,
                    invocation.param,
                    namespace,
                    self._cluster.rbac,
                )
                whole = self._patched(policy, applies, expression, names, whole, answers)
            except (PolicyFailure, PatchFault) as failure:
                errors.add(policy.source, invocation.binding, str(failure), "Invalid")
        return {**whole, "apiVersion": stated} if whole.get("apiVersion") != stated else whole

    def _patched(
        self,
        policy: CompiledMutations,
        applies: bool,
        expression: Expression,
        names: Mapping[str, Any],
        whole: Raw,
        answers: WebhookAnswers | None,
    ) -> Raw:
        if expression.program is None:
            raise PatchFault(expression.why)
        what = (POLICY, policy.source.name, str(policy.source.resource_version), expression.text)
        outcome = evaluated(answers, what, names, partial(_outcome, policy, expression, names))
        if outcome.error:
            raise PatchFault(outcome.error)
        if applies:
            made: Raw = applied_configuration(whole, outcome.value, self._cluster.merge_schema_of(whole))
        else:
            made = patched_by_json(whole, outcome.value)
        if schema_for(dict(made)) is None:
            return made
        return encoded_object(default_typed(decoded_object(dict(made))))


def _outcome(policy: CompiledMutations, expression: Expression, names: Mapping[str, Any]) -> Evaluated:
    return policy.composition.evaluation(names, BUDGET).outcome(expression)
