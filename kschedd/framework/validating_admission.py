"""Validating admission plugins from plugin files: classes with a method `validate` that may reject a write.

`validate(self, operation, new, old)` is called with "CREATE", "UPDATE" or "DELETE" and the manifests (read-only maps;
`new` is None for a DELETE, `old` for a CREATE). The method returns None, or the reasons for rejecting the write: a
string or a list of strings. `kinds` lists the kinds for which the method is called; without `kinds`, it is called for
all kinds. The method is not called for subresources (status, scale, binding).

Errors: Forbidden, with the plugin's reasons; AdmissionPluginFailed if the method raises, returns another value or takes
too long (like `failurePolicy: Fail`).
"""

from typing import Any, Final

from kschedd.framework.faults import BadAnswer, PluginError, plain_text, shown
from kschedd.framework.guard import OWNERS_LIMIT_S, PluginGuard
from kschedd.store.admission.chain import NOT_DONE, PLUGINS, ValidatingPlugin
from kschedd.store.admission_plugins.attributes import Attributes, Raw
from kschedd.store.errors import AdmissionPluginFailed, Forbidden
from kschedd.values import frozen

_ALLOWED: Final = "allowed are None, a text and a list of texts"


def is_validating(cls: type[Any]) -> bool:
    return callable(getattr(cls, "validate", None))


def fault_of_class(cls: type[Any], name: str) -> str:
    """Return why a class cannot be an admission plugin; "" if the class can."""
    if name in PLUGINS or name in NOT_DONE:
        return f"the name {name} belongs to an admission plugin of Kubernetes; choose another one"
    kinds = getattr(cls, "kinds", ())
    if type(kinds) not in (tuple, list, frozenset, set) or not all(type(kind) is str for kind in kinds):
        return f"class {cls.__name__} has kinds {shown(kinds)}; allowed is a tuple of kinds: ('Pod',)"
    return ""


def validating_plugin(
    name: str, cls: type[Any], start_limit_s: float, limit_s: float = OWNERS_LIMIT_S, *, on: bool
) -> ValidatingPlugin:
    """Return the plugin in the form that the admission chain calls.

    Raises PluginError if the plugin cannot be constructed.
    """
    guard = PluginGuard(name, limit_s)
    plugin = guard.call("__init__", cls, limit_s=start_limit_s, source=name)

    def ask(operation: str, new: Raw | None, old: Raw | None) -> tuple[str, ...]:
        return _reasons(plugin.validate(operation, new, old))

    def validate(attributes: Attributes, new: Raw | None, old: Raw | None) -> None:
        try:
            reasons = guard.call("validate", ask, attributes.operation, frozen(new), frozen(old))
        except PluginError as fault:
            raise AdmissionPluginFailed(name, fault.why) from None
        if reasons:
            why = f'admission plugin "{name}" denied the request: {", ".join(reasons)}'
            raise Forbidden(attributes.kind, attributes.name, why)

    return ValidatingPlugin(validate, frozenset(getattr(cls, "kinds", ())), on)


def _reasons(answer: Any) -> tuple[str, ...]:
    """Return the reasons from the result of `validate`.

    Call this function in the plugin's thread, because reading the result may run plugin code.
    """
    if answer is None:
        return ()
    texts = (answer,) if isinstance(answer, str) else answer
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text for text in texts):
        raise BadAnswer(f"validate returned {shown(answer)}; {_ALLOWED}")
    return tuple(plain_text(text) for text in texts)
