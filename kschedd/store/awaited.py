"""Calls of webhooks and long evaluations of policies as values, and their answers.

The store never waits. A write that needs the answer of a webhook raises WebhooksNeeded with the calls. The caller of
the write rolls the write back, makes the calls without blocking, and repeats the write with the answers. The evaluation
of a policy that costs more than `EVALUATED_AT_ONCE` is treated like a call of a webhook, and so is compiling it.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

if TYPE_CHECKING:
    from kschedd.cel.allowance import Allowance

Raw = Mapping[str, Any]
T = TypeVar("T")
EVALUATED_AT_ONCE: Final = 10_000
"""Cost of all expressions that one attempt of a write evaluates itself: about 15 ms, during which nothing else runs."""
_VOLATILE: Final = ("uid", "creationTimestamp", "managedFields", "resourceVersion")


@attrs.frozen(eq=False)
class WebhookCall:
    """One call: the address, the certificate authority, the timeout, and the AdmissionReview without its uid."""

    webhook: str
    url: str  # URL for messages, without the query
    address: str  # host and port to connect to
    host: str  # host name for TLS and the Host header
    path: str
    ca: str  # PEM; "" for the authorities of this machine
    timeout_s: int
    version: str  # of the AdmissionReview
    request: Raw
    round: int = 0

    @property
    def key(self) -> str:
        """The identity of the call in a repeated write, whose new objects have other uids and times."""
        stable = {**self.request, **{part: _stable(self.request.get(part)) for part in ("object", "oldObject")}}
        text = json.dumps([self.webhook, self.url, self.round, stable], sort_keys=True, default=str)
        return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _stable(raw: Any) -> Any:
    if not isinstance(raw, Mapping):
        return raw
    meta = raw.get("metadata") or {}
    return {**raw, "metadata": {field: value for field, value in meta.items() if field not in _VOLATILE}}


@attrs.frozen
class WebhookAnswer:
    """The `response` of a review, or the failure of the call."""

    response: Raw | None = None
    failure: str = ""
    is_invalid: bool = False  # the webhook answered, but not with a valid response


@attrs.frozen(eq=False)
class EvaluationResult:
    """The value of an evaluation, or the exception that ended it."""

    value: Any = None
    failure: Exception | None = None


@attrs.frozen(eq=False)
class LongEvaluation:
    """The evaluation of expressions that cost more than the allowance.

    `work` must depend only on values that it contains.
    """

    key: str
    work: Callable[[], Any]

    def run(self) -> EvaluationResult:
        """Evaluate the expressions, in any thread."""
        try:
            return EvaluationResult(self.work())
        except Exception as failure:  # the repeated write raises this exception
            return EvaluationResult(failure=failure)


class WebhooksNeeded(BaseException):
    """A write needs the answers of these calls.

    Not a subclass of Exception, so that no handler treats it as a failure of the write.
    """

    def __init__(self, calls: "Sequence[WebhookCall | LongEvaluation]") -> None:
        super().__init__(calls)
        self.calls = calls


class WebhookAnswers:
    """The answers for one write. With `evaluations_only`, no webhooks are called."""

    def __init__(self, *, evaluations_only: bool = False) -> None:
        self.evaluations_only = evaluations_only
        self._known: dict[str, WebhookAnswer] = {}
        self._evaluated: dict[str, EvaluationResult] = {}
        self._allowance: Allowance | None = None  # created for the first expression

    def begin(self) -> None:
        """Begin an attempt of the write, with a new allowance for expressions."""
        self._allowance = None

    def add_result(self, evaluation: LongEvaluation, result: EvaluationResult) -> None:
        self._evaluated[evaluation.key] = result

    def evaluated(self, what: Sequence[str], names: Mapping[str, Any], work: Callable[[], T]) -> T:
        """Return the result of `work`, the evaluation of the expressions `what` with these variables.

        Raises the exceptions of `work`, and WebhooksNeeded if the expressions cost more than the allowance.
        """
        result = self._evaluated.get(_key_of(what, names)) if self._evaluated else None
        if result is not None:
            if result.failure is not None:
                raise result.failure
            known: T = result.value
            return known
        from kschedd.cel.allowance import Allowance, AllowanceSpent, limited_to  # most clusters have no expressions

        if self._allowance is None:
            self._allowance = Allowance(EVALUATED_AT_ONCE)
        try:
            with limited_to(self._allowance):
                return work()
        except AllowanceSpent:
            if (authorizer := names.get("authorizer")) is not None:
                authorizer.judge.freeze()
            raise WebhooksNeeded([LongEvaluation(_key_of(what, names), work)]) from None

    def add(self, call: WebhookCall, answer: WebhookAnswer) -> None:
        self._known[call.key] = answer

    def of(self, calls: Sequence[WebhookCall]) -> list[WebhookAnswer]:
        """Return the answers. Raises WebhooksNeeded if answers are missing."""
        if missing := [call for call in calls if call.key not in self._known]:
            raise WebhooksNeeded(missing)
        return [self._known[call.key] for call in calls]


def _key_of(what: Sequence[str], names: Mapping[str, Any]) -> str:
    """Return the identity of an evaluation in a repeated write, whose new objects have other uids and times."""
    stable = {name: _stable(value) for name, value in names.items() if not name.startswith("authorizer")}
    text = json.dumps([what, stable], sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def evaluated(
    answers: WebhookAnswers | None, what: Sequence[str], names: Mapping[str, Any], work: Callable[[], T]
) -> T:
    """Return the result of `work`, which evaluates the expressions `what`; without `answers`, nothing else is delayed.

    Raises WebhooksNeeded.
    """
    return work() if answers is None else answers.evaluated(what, names, work)


def checked(answers: WebhookAnswers | None, kind: str, raw: Raw, old: Raw | None, work: Callable[[], T]) -> T:
    """Return the result of `work`, which compiles the expressions of an object of this kind.

    When the write is repeated, the object may have another generated name and other times in its status. The result is
    therefore identified by the parts that contain expressions, and by those of the previous object, `old`. Raises
    WebhooksNeeded.
    """
    names = {"object": _with_expressions(raw), "oldObject": None if old is None else _with_expressions(old)}
    return evaluated(answers, (kind, "checked"), names, work)


def _with_expressions(raw: Raw) -> Raw:
    return {part: raw[part] for part in ("spec", "webhooks") if part in raw}
