"""Selectors of a call, parsed in a thread where that would hold up the event loop.

Raises: SelectorTextError.
"""

from kschedd.api.selecting.selector_text import FieldSelector, has_many_terms, parse_field_selector, parse_selector_text
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.service.table import Call

Selectors = tuple[LabelSelector | None, FieldSelector | None]


async def selectors(call: Call, labels: str | None, fields: str | None = None) -> Selectors:
    """Parse a label selector and a field selector; None stays None."""
    if has_many_terms(labels) or has_many_terms(fields):
        return await call.services.workers.run(call.client, lambda given_up: _parsed(labels, fields))
    return _parsed(labels, fields)


def _parsed(labels: str | None, fields: str | None) -> Selectors:
    return (
        None if labels is None else parse_selector_text(labels),
        None if fields is None else parse_field_selector(fields),
    )
