"""Webhooks of a write: which webhooks are called, and what their responses mean.

Source: Kubernetes v1.37, apiserver/pkg/admission/plugin/webhook: generic/webhook.go, mutating/dispatcher.go,
validating/dispatcher.go, request/admissionreview.go, errors/statuserror.go.
Errors: WebhookDenied, WebhookFailed; WebhooksNeeded, before the answers are known.

The audit event gets the annotations of the responses, of each mutating webhook, and of each ignored failure. Upstream's
annotations with patches belong to the audit level Request.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.codec import decoded_object, encoded_object
from kschedd.api.schemas.go_order import go_json
from kschedd.api.selecting.selectors import SelectorError
from kschedd.registry.defaults import default_typed
from kschedd.store.awaited import WebhookAnswer, WebhookAnswers, WebhookCall, evaluated
from kschedd.store.errors import BadPatch, Forbidden, WebhookDenied, WebhookFailed
from kschedd.store.patches.json_patch import json_patch
from kschedd.store.policies.compiled import Composition, Expression, PolicyFailure, compiled, conditions_met
from kschedd.store.policies.environment import request_names
from kschedd.store.policies.params import PolicyCluster
from kschedd.store.policies.patching import patch_failure
from kschedd.store.policies.reviewed import (
    Reviewed,
    ReviewedResource,
    rule_matches,
    selected_namespace,
    selected_object,
)
from kschedd.store.remarks import Remarks
from kschedd.store.webhooks.addresses import address_of, certificates_of
from kschedd.store.webhooks.modes import WebhookMode

Raw = Mapping[str, Any]
MUTATING: Final = "MutatingWebhookConfiguration"
VALIDATING: Final = "ValidatingWebhookConfiguration"
_WITHOUT_EFFECTS: Final = ("None", "NoneOnDryRun")
_DEFAULT_TIMEOUT_S: Final = 10
_VERSION: Final = "v1"
_MOST_CONDITIONS: Final = 1_000  # compiled conditions in the cache
_MUTATION: Final = "mutation.webhook.admission.k8s.io/"
_FAILED_OPEN: Final = "failed-open."
_VALIDATION: Final = "validating.webhook.admission.k8s.io/"


@attrs.frozen(eq=False)
class Hook:
    """One webhook of a configuration that selects the request."""

    configuration: str
    raw: Raw
    matched: ReviewedResource
    place: int  # position among the webhooks of all configurations

    @property
    def name(self) -> str:
        return str(self.raw.get("name") or "")

    @property
    def ignores(self) -> bool:
        return self.raw.get("failurePolicy") == "Ignore"

    @property
    def key(self) -> tuple[str, str]:
        return self.configuration, self.name


@attrs.define(eq=False)
class HookAccess:
    """How a request reaches webhooks: the answers of calls (None: nothing can be called), and where remarks go."""

    answers: WebhookAnswers | None
    mode: WebhookMode
    remarks: Remarks


class _IgnoredFailure(Exception):
    """A webhook failed, and its failures are ignored."""


class Webhooks:
    """The webhooks of a cluster."""

    def __init__(self, cluster: PolicyCluster) -> None:
        self._cluster = cluster
        self.forget()

    def forget(self) -> None:
        """Drop the compiled match conditions, because the version of Kubernetes has changed."""
        self._composition: Composition | None = None
        self._conditions: dict[str, Expression] = {}  # compiled match conditions, by their text

    def validate(self, reviewed: Reviewed, access: HookAccess) -> None:
        """Raise WebhookDenied or WebhookFailed if a validating webhook rejects the write, or cannot be called."""
        calls: list[tuple[int, Hook, WebhookCall]] = []
        for place, hook in enumerate(self._hooks(VALIDATING, reviewed, access.answers)):
            try:
                call = self._call(hook, reviewed, access, 0)
            except _IgnoredFailure:
                _note_failure(hook, access.remarks, f"{_VALIDATION}round_0_index_{place}")
                continue
            if call is not None:
                calls.append((place, hook, call))
        if not calls:
            return
        assert access.answers is not None, "calls are prepared only if they can be made"
        answers = access.answers.of([call for _, _, call in calls])
        refusals: list[WebhookDenied | WebhookFailed] = []
        for (place, hook, _), answer in zip(calls, answers, strict=True):
            try:
                _judge(hook, _response(hook, answer, mutating=False), access.remarks)
            except _IgnoredFailure:
                _note_failure(hook, access.remarks, f"{_VALIDATION}round_0_index_{place}")
            except (WebhookDenied, WebhookFailed) as refusal:
                refusals.append(refusal)
        if refusals:
            raise refusals[0]

    def mutated(
        self,
        reviewed: Reviewed,
        access: HookAccess,
        before: set[tuple[str, str]],
        again: set[tuple[str, str]],
        only: set[tuple[str, str]] | None,
    ) -> Raw | None:
        """Return the new object after the mutating webhooks, or after those in `only`.

        The keys of reinvocable webhooks are added to `before`, and move to `again` after a later change.
        """
        whole = reviewed.new
        for hook in self._hooks(MUTATING, reviewed, access.answers):
            if only is not None and hook.key not in only:
                continue
            changed = self._changed(hook, attrs.evolve(reviewed, new=whole), access, 0 if only is None else 1)
            if changed != whole:
                again |= before
                before.clear()
                whole = changed
            if hook.raw.get("reinvocationPolicy") == "IfNeeded":
                before.add(hook.key)
        return whole

    def _changed(self, hook: Hook, reviewed: Reviewed, access: HookAccess, number: int) -> Raw | None:
        """Return the new object after one webhook. Record the invocation, in this round, for the audit event."""
        key, changed = f"{_MUTATION}round_{number}_index_{hook.place}", reviewed.new
        try:
            call = self._call(hook, reviewed, access, number)
            if call is None:
                return changed
            assert access.answers is not None, "calls are prepared only if they can be made"
            (answer,) = access.answers.of([call])
            response = _response(hook, answer, mutating=True)
            _judge(hook, response, access.remarks)
            changed = _patched(hook, response, reviewed.new)
        except _IgnoredFailure:
            _note_failure(hook, access.remarks, key)
        except (WebhookDenied, WebhookFailed):
            access.remarks.annotate(key, _invocation(hook, mutated=False))
            raise
        access.remarks.annotate(key, _invocation(hook, mutated=changed != reviewed.new))
        return changed

    # -- selection --------------------------------------------------------------------------------------------

    def _hooks(self, kind: str, reviewed: Reviewed, answers: WebhookAnswers | None) -> Iterator[Hook]:
        stated = ((each, raw) for each in self._cluster.list(kind) for raw in each.raw.get("webhooks") or ())
        for place, (configuration, raw) in enumerate(stated):
            found = self._selected(configuration, raw, place, reviewed, answers)
            if found is not None:
                yield found

    def _selected(
        self, configuration: Object, raw: Raw, place: int, reviewed: Reviewed, answers: WebhookAnswers | None
    ) -> Hook | None:
        try:
            if not selected_namespace(raw.get("namespaceSelector"), reviewed, self._cluster):
                return None
            if not selected_object(raw.get("objectSelector"), reviewed):
                return None
        except SelectorError as fault:
            raise WebhookFailed(str(fault)) from None
        exact = raw.get("matchPolicy") == "Exact"
        resources = [reviewed.resource, *(() if exact else reviewed.equivalents)]
        matched = next(
            (each for each in resources for rule in raw.get("rules") or () if rule_matches(rule, reviewed, each)), None
        )
        if matched is None:
            return None
        hook = Hook(configuration.name, raw, matched, place)
        return hook if self._meets_conditions(hook, reviewed, answers) else None

    def _meets_conditions(self, hook: Hook, reviewed: Reviewed, answers: WebhookAnswers | None) -> bool:
        stated = hook.raw.get("matchConditions") or ()
        if not stated:
            return True
        if self._composition is None:
            self._composition = Composition(self._cluster.features, params=False)
        composition, texts = self._composition, [(each["name"], each["expression"].strip()) for each in stated]
        names = request_names(reviewed, hook.matched, None, None, self._cluster.rbac)

        def met() -> bool:  # in another thread if it takes long; the caches of compiled expressions allow this
            conditions = [(name, self._condition(composition, text)) for name, text in texts]
            return conditions_met(composition, conditions, names)

        try:
            return evaluated(answers, [text for _, text in texts], names, met)
        except PolicyFailure as failure:
            if hook.ignores:
                return False
            raise Forbidden(reviewed.kind.name, reviewed.shown_name, str(failure)) from None

    def _condition(self, composition: Composition, text: str) -> Expression:
        known = self._conditions.get(text)
        if known is None:
            if len(self._conditions) >= _MOST_CONDITIONS:
                self._conditions.clear()
            known = self._conditions[text] = compiled(text, composition.environment(), ("bool",))
        return known

    # -- calls ------------------------------------------------------------------------------------------------

    def _call(self, hook: Hook, reviewed: Reviewed, access: HookAccess, number: int) -> WebhookCall | None:
        """Return the call of a webhook; None if it is skipped. Raises WebhookDenied, WebhookFailed, _IgnoredFailure."""
        name, warn = hook.name, access.remarks.warn
        if reviewed.dry_run and hook.raw.get("sideEffects") not in _WITHOUT_EFFECTS:
            raise WebhookDenied(400, "BadRequest", f'admission webhook "{name}" does not support dry run')
        client = hook.raw.get("clientConfig") or {}
        found = address_of(client, self._cluster)
        if access.answers is None or access.answers.evaluations_only:
            warn(f'admission webhook "{name}" was not called: webhooks are called only by a running daemon')
            return None
        address = found.address or (found.cluster_ip if access.mode == "call" else "")
        if not address and not found.missing and access.mode == "skip":
            warn(f'admission webhook "{name}" was not called: only simulated pods back its Service')
            return None
        if not address:
            why = found.missing or f'no endpoints available for service "{found.host.partition(".")[0]}"'
            raise _failure(hook, f'failed to call webhook: Post "{found.url}?timeout={_timeout(hook)}s": {why}')
        seen = reviewed.in_version(hook.matched)
        request = {
            **reviewed.request(hook.matched),
            "object": seen.new,
            "oldObject": seen.old,
        }
        return WebhookCall(
            name,
            found.url,
            address,
            found.host,
            found.path,
            certificates_of(client),
            _timeout(hook),
            _VERSION,
            request,
            number,
        )


def _timeout(hook: Hook) -> int:
    return int(hook.raw.get("timeoutSeconds") or _DEFAULT_TIMEOUT_S)


def _failure(hook: Hook, why: str) -> WebhookFailed | _IgnoredFailure:
    """Return the error for a failure of the webhook."""
    return _IgnoredFailure() if hook.ignores else WebhookFailed(f'failed calling webhook "{hook.name}": {why}')


def _note_failure(hook: Hook, remarks: Remarks, key: str) -> None:
    remarks.annotate(_FAILED_OPEN + key, hook.name)


def _invocation(hook: Hook, *, mutated: bool) -> str:
    return go_json({"configuration": hook.configuration, "webhook": hook.name, "mutated": mutated})


def _response(hook: Hook, answer: WebhookAnswer, *, mutating: bool) -> Raw:
    """Return the response of a call. Raises WebhookFailed, _IgnoredFailure."""
    if answer.failure or answer.response is None:
        begin = "received invalid webhook response" if answer.is_invalid else "failed to call webhook"
        raise _failure(hook, f"{begin}: {answer.failure}")
    response = answer.response
    patch, of_type = response.get("patch"), response.get("patchType")
    wrong = ""
    if mutating and patch and of_type is None:
        wrong = "webhook returned response.patch but not response.patchType"
    elif mutating and not patch and of_type is not None:
        wrong = "webhook returned response.patchType but not response.patch"
    elif not mutating and patch:
        wrong = "validating webhook may not return response.patch"
    elif not mutating and of_type is not None:
        wrong = "validating webhook may not return response.patchType"
    if wrong:
        raise _failure(hook, f"received invalid webhook response: {wrong}")
    return response


def _judge(hook: Hook, response: Raw, remarks: Remarks) -> None:
    """Pass on the audit annotations and warnings of a response. Raises WebhookDenied if it rejects the write."""
    for key, value in (response.get("auditAnnotations") or {}).items():
        remarks.annotate(f"{hook.name}/{key}", str(value))
    for text in response.get("warnings") or ():
        remarks.warn(str(text))
    if response.get("allowed"):
        return
    result: Raw = response.get("status") or {}
    code = int(result.get("code") or 0)
    begin = f'admission webhook "{hook.name}" denied the request'
    why = result.get("message") or result.get("reason")
    text = f"{begin}: {why}" if why else f"{begin} without explanation"
    details = result.get("details")
    raise WebhookDenied(max(code, 400), str(result.get("reason") or ""), text, details)


def _patched(hook: Hook, response: Raw, whole: Raw | None) -> Raw | None:
    patch = response.get("patch")
    if not patch:
        return whole
    try:
        operations: Sequence[Any] = json.loads(base64.b64decode(patch))
    except (binascii.Error, ValueError) as fault:
        raise _failure(hook, f"received undecodable patch in webhook response: {fault}") from None
    if not operations:
        return whole
    if whole is None:
        raise WebhookFailed(
            f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this operation'
        )
    if response.get("patchType") != "JSONPatch":
        raise _failure(hook, f'unsupported patch type "{response.get("patchType")}"')
    try:
        made: Raw = json_patch(dict(whole), operations)
    except BadPatch as fault:
        raise WebhookFailed(patch_failure(fault.why, operations)) from None
    if schema_for(dict(made)) is None:
        return made
    return encoded_object(default_typed(decoded_object(dict(made))))
