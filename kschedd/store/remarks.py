"""Remarks of admission about a request, besides its decision: warnings, and annotations of the audit event.

Source: Kubernetes v1.37, apiserver/pkg/admission/attributes.go (AddAnnotation).
"""

import attrs

from kschedd.api.selecting.names import qualified_name


@attrs.frozen(eq=False)
class Remarks:
    """The remarks about one request, in the order in which they were made."""

    warnings: list[str] = attrs.field(factory=list)
    annotations: dict[str, str] = attrs.field(factory=dict)

    def warn(self, text: str) -> None:
        """Add a warning for the user. Equal warnings are added only once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def annotate(self, key: str, value: str) -> None:
        """Add an annotation to the audit event. The first value of a key stays; an invalid key is ignored."""
        if key.count("/") == 1 and not qualified_name(key):
            self.annotations.setdefault(key, value)
