"""Webhooks of a write: which webhooks are called, and what their responses mean.

Source: Kubernetes v1.37, apiserver/pkg/admission/plugin/webhook: generic/webhook.go, mutating/dispatcher.go,
validating/dispatcher.go, request/admissionreview.go, errors/statuserror.go.
Errors: WebhookDenied, WebhookFailed; WebhooksNeeded, before the answers are known.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.codec import decoded_object, encoded_object
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
from kschedd.store.webhooks.addresses import address_of, certificates_of
from kschedd.store.webhooks.modes import WebhookMode

Raw = Mapping[str, Any]
MUTATING: Final = "MutatingWebhookConfiguration"
VALIDATING: Final = "ValidatingWebhookConfiguration"
_WITHOUT_EFFECTS: Final = ("None", "NoneOnDryRun")
_DEFAULT_TIMEOUT_S: Final = 10
_VERSION: Final = "v1"
_MOST_CONDITIONS: Final = 1_000  # compiled conditions in the cache


@attrs.frozen(eq=False)
class Hook:
    """One webhook of a configuration that selects the request."""

    configuration: str
    raw: Raw
    matched: ReviewedResource

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
    """How a request reaches webhooks: the answers of calls (None: nothing can be called), and where warnings go."""

    answers: WebhookAnswers | None
    mode: WebhookMode
    warn: Callable[[str], None]


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
        hooks = list(self._hooks(VALIDATING, reviewed, access.answers))
        prepared = [(hook, self._call(hook, reviewed, access, 0)) for hook in hooks]
        calls = [(hook, call) for hook, call in prepared if call is not None]
        if not calls:
            return
        assert access.answers is not None, "calls are prepared only if they can be made"
        answers = access.answers.of([call for _, call in calls])
        for (hook, call), answer in zip(calls, answers, strict=True):
            response = _response(hook, call, answer, mutating=False)
            if response is not None:
                _judge(hook, response, access.warn)

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
            seen = attrs.evolve(reviewed, new=whole)
            call = self._call(hook, seen, access, 0 if only is None else 1)
            if call is None:
                continue
            assert access.answers is not None, "calls are prepared only if they can be made"
            (answer,) = access.answers.of([call])
            response = _response(hook, call, answer, mutating=True)
            if response is None:
                continue
            _judge(hook, response, access.warn)
            changed = _patched(hook, response, whole)
            if changed != whole:
                again |= before
                before.clear()
                whole = changed
            if hook.raw.get("reinvocationPolicy") == "IfNeeded":
                before.add(hook.key)
        return whole

    # -- selection --------------------------------------------------------------------------------------------

    def _hooks(self, kind: str, reviewed: Reviewed, answers: WebhookAnswers | None) -> Iterator[Hook]:
        for configuration in self._cluster.list(kind):
            for raw in configuration.raw.get("webhooks") or ():
                found = self._selected(configuration, raw, reviewed, answers)
                if found is not None:
                    yield found

    def _selected(
        self, configuration: Object, raw: Raw, reviewed: Reviewed, answers: WebhookAnswers | None
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
        hook = Hook(configuration.name, raw, matched)
        return hook if self._meets_conditions(hook, reviewed, answers) else None

    def _meets_conditions(self, hook: Hook, reviewed: Reviewed, answers: WebhookAnswers | None) -> bool:
        stated = hook.raw.get("matchConditions") or ()
        if not stated:
            return True
        if self._composition is None:
            self._composition = Composition(self._cluster.features, params=False)
        composition, texts = self._composition, [each["expression"].strip() for each in stated]
        conditions = [
            (each["name"], self._condition(composition, text)) for each, text in zip(stated, texts, strict=True)
        ]
        names = request_names(reviewed, hook.matched, None, None, self._cluster.rbac)
        try:
            met = partial(conditions_met, composition, conditions, names)
            return evaluated(answers, texts, names, met)
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
        """Return the call of a webhook; None if it is skipped, or if its failure is ignored."""
        name = hook.name
        if reviewed.dry_run and hook.raw.get("sideEffects") not in _WITHOUT_EFFECTS:
            raise WebhookDenied(400, "BadRequest", f'admission webhook "{name}" does not support dry run')
        client = hook.raw.get("clientConfig") or {}
        found = address_of(client, self._cluster)
        if access.answers is None or access.answers.evaluations_only:
            access.warn(f'admission webhook "{name}" was not called: webhooks are called only by a running daemon')
            return None
        address = found.address or (found.cluster_ip if access.mode == "call" else "")
        if not address and not found.missing and access.mode == "skip":
            access.warn(f'admission webhook "{name}" was not called: only simulated pods back its Service')
            return None
        if not address:
            why = found.missing or f'no endpoints available for service "{found.host.partition(".")[0]}"'
            _fail(hook, f'failed to call webhook: Post "{found.url}?timeout={_timeout(hook)}s": {why}')
            return None
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


def _fail(hook: Hook, why: str) -> None:
    """Raise WebhookFailed, unless the webhook's failures are ignored."""
    if not hook.ignores:
        raise WebhookFailed(f'failed calling webhook "{hook.name}": {why}')


def _response(hook: Hook, call: WebhookCall, answer: WebhookAnswer, *, mutating: bool) -> Raw | None:
    """Return the response; None if the call failed and failures are ignored."""
    if answer.failure or answer.response is None:
        begin = "received invalid webhook response" if answer.is_invalid else "failed to call webhook"
        _fail(hook, f"{begin}: {answer.failure}")
        return None
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
        _fail(hook, f"received invalid webhook response: {wrong}")
        return None
    return response


def _judge(hook: Hook, response: Raw, warn: Callable[[str], None]) -> None:
    """Pass on the warnings of a response. Raises WebhookDenied if it rejects the write."""
    for text in response.get("warnings") or ():
        warn(str(text))
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
        _fail(hook, f"received undecodable patch in webhook response: {fault}")
        return whole
    if not operations:
        return whole
    if whole is None:
        raise WebhookFailed(
            f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this operation'
        )
    if response.get("patchType") != "JSONPatch":
        _fail(hook, f'unsupported patch type "{response.get("patchType")}"')
        return whole
    try:
        made: Raw = json_patch(dict(whole), operations)
    except BadPatch as fault:
        raise WebhookFailed(patch_failure(fault.why, operations)) from None
    if schema_for(dict(made)) is None:
        return made
    return encoded_object(default_typed(decoded_object(dict(made))))
