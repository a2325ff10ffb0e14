"""Performing a call of a method: permission, the slots of large answers, and the audit log.

The socket and the page in the browser call methods through these functions.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import attrs

from kschedd.access.audit import AuditedCall, AuditOutcome
from kschedd.access.audit_log import AuditLog
from kschedd.access.requests import AccessRequest
from kschedd.service.table import Call, Method, check_may_call

#: raises AccessDenied if RBAC objects do not allow a request
Authorize = Callable[[AccessRequest], Awaitable[None]]


@attrs.frozen(eq=False)
class MethodCalls:
    """Performs calls. `large_slot` opens a slot for an answer that grows with the cluster.

    `outcome_of` returns code and message of an exception, for the audit log.
    """

    audit: AuditLog | None
    authorize: Authorize | None
    large_slot: Callable[[], AbstractAsyncContextManager[None]]
    outcome_of: Callable[[Exception], tuple[str, str]]

    async def perform(self, method: Method, call: Call) -> Any:
        """Return the result of the call, and record a write in the audit log, even if it fails."""
        if self.audit is None or method.reads:
            return await self._permitted(method, call)
        noted = AuditedCall.of_method(call.services.caller, method.name, call.args, self.audit.now_s())
        outcome = AuditOutcome.of_error("cancelled", "the client disconnected")
        try:
            result = await self._permitted(method, call)
            outcome = AuditOutcome()
            return result
        except Exception as raised:
            outcome = AuditOutcome.of_error(*self.outcome_of(raised))
            raise
        finally:
            annotations = {**call.annotations, **noted.annotations}
            self.audit.note(attrs.evolve(noted, annotations=annotations), outcome)

    async def _permitted(self, method: Method, call: Call) -> Any:
        caller = call.services.caller
        check_may_call(caller, method)
        if caller.user.judged and not method.judged:
            assert self.authorize is not None, "a user is judged only by a cluster"
            path = f"/rpc/{method.name}"
            await self.authorize(AccessRequest(caller.user, "get" if method.reads else "post", path=path))
        if not method.large:
            return await method.handler(call)
        if method.small is not None and (result := await method.small(call)) is not None:
            return result
        async with self.large_slot():
            return await method.handler(call)
