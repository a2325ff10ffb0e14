"""Parameters that several methods for objects have, and the parsing of selectors.

Raises: SelectorTextError.
"""

from kschedd.api.schemas.decoding import FIELD_VALIDATIONS
from kschedd.api.selecting.selector_text import FieldSelector, has_many_terms, parse_field_selector, parse_selector_text
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.service.params import Param
from kschedd.service.table import Call

SPACES = Param("namespace", "string", False, doc="null: all namespaces")
KIND = Param("kind", "string", doc="a kind: `Pod`, `pods`, `po`, `deployments.apps`")
NAME = Param("name", "string", doc="the object's name")
NAMESPACE = Param("namespace", "string", False, doc="null: `default` for namespaced kinds")
FIELDS = Param(
    "fields",
    "string[]",
    False,
    doc="return only apiVersion, kind, metadata and these fields, such as `spec.nodeName`",
)
MANAGERS = Param("managed_fields", "boolean", False, False, "include metadata.managedFields")
METADATA_ONLY = Param("metadata_only", "boolean", False, False, "return only apiVersion, kind and metadata")
OVERWRITE = Param("overwrite", "boolean", False, False, "whether an existing value may be replaced")

VALIDATION = Param(
    "field_validation",
    "string",
    False,
    "Strict",
    "unknown fields: reject the object, or drop them with or without a warning",
    FIELD_VALIDATIONS,
)
GIVEN_SPACE = Param("namespace", "string", False, "default", "for objects without a namespace")
DRY_RUN = Param("dry_run", "boolean", False, False, "return the result without changing anything")


Selectors = tuple[LabelSelector | None, FieldSelector | None]


async def selectors(call: Call, labels: str | None, fields: str | None = None) -> Selectors:
    """Parse a label selector and a field selector (None if not given); long ones are parsed in a thread."""
    if has_many_terms(labels) or has_many_terms(fields):
        return await call.services.workers.run(call.client, lambda given_up: _parsed(labels, fields))
    return _parsed(labels, fields)


def _parsed(labels: str | None, fields: str | None) -> Selectors:
    return (
        None if labels is None else parse_selector_text(labels),
        None if fields is None else parse_field_selector(fields),
    )
