"""Syntax checks of names, label keys and label values, with upstream's messages.

Source: Kubernetes v1.34, apimachinery/pkg/util/validation/validation.go. Every check receives a text and returns its
errors, with the messages of Kubernetes; valid text has no errors. Results are cached, because a cluster uses few
distinct names many times.
"""

import re
from functools import lru_cache
from typing import Final

Faults = tuple[str, ...]

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_WILDCARD: Final = rf"\*\.{_SUBDOMAIN}"
_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_QUALIFIED})?"
_DNS1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"

_QUALIFIED_RE: Final = re.compile(_QUALIFIED, re.ASCII)
_PORT_CHARACTERS: Final = re.compile("[-a-z0-9]+", re.ASCII)
_PERCENT: Final = re.compile("[0-9]+%", re.ASCII)

_LONGEST_MATCHED: Final = 10_000  # characters
_CACHED: Final = 1 << 11  # number of cached results; small, because only a few names recur often


def too_long(most: int) -> str:
    return f"must be no more than {most} characters"


def between(least: int, most: int) -> str:
    return f"must be between {least} and {most}, inclusive"


def does_not_match(rule: str, regex: str, *examples: str) -> str:
    """Return Kubernetes' message for text that does not match `regex`; the exact spacing is part of the message."""
    text = f"{rule} ("
    if examples:
        text += "e.g. " + " or ".join(f"'{example}', " for example in examples)
    return f"{text}regex used for validation is '{regex}')"


def without_last_dash(prefix: str) -> str:
    """Return a generateName as it is validated, without a dash at its end."""
    return prefix[:-2] + "a" if len(prefix) > 1 and prefix[-1] == "-" else prefix


class _Form:
    """A regular expression with a maximum length; `why` is the message for text that does not match."""

    def __init__(self, most: int, regex: str, rule: str, *examples: str) -> None:
        self.most, self.why = most, does_not_match(rule, regex, *examples)
        self._pattern: Final = re.compile(regex, re.ASCII)

    def matches(self, value: str) -> bool:
        return len(value) <= _LONGEST_MATCHED and self._pattern.fullmatch(value) is not None

    def faults(self, value: str) -> Faults:
        wrong = (too_long(self.most),) if len(value) > self.most else ()
        return wrong if self.matches(value) else (*wrong, self.why)


_LABEL_FORM: Final = _Form(
    63,
    _LABEL,
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character",
    "my-name",
    "123-abc",
)
_SUBDOMAIN_FORM: Final = _Form(
    253,
    _SUBDOMAIN,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character",
    "example.com",
)
_WILDCARD_FORM: Final = _Form(
    253,
    _WILDCARD,
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    "*.example.com",
)
_DNS1035_FORM: Final = _Form(
    63,
    _DNS1035,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    "my-name",
    "abc-123",
)
_LABEL_VALUE_FORM: Final = _Form(
    63,
    _LABEL_VALUE,
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character",
    "MyValue",
    "my_value",
    "12345",
)


@lru_cache(_CACHED)
def dns_label(value: str) -> Faults:
    """Check an RFC 1123 label, which is the name of a namespace, container or volume."""
    faults = _LABEL_FORM.faults(value)
    if faults[-1:] == (_LABEL_FORM.why,) and _SUBDOMAIN_FORM.matches(value):
        return (*faults[:-1], "must not contain dots")
    return faults


def is_dns_subdomain(value: str) -> bool:
    """Return whether `dns_subdomain` finds no error. The result is not cached, because these values rarely recur."""
    return len(value) <= _SUBDOMAIN_FORM.most and _SUBDOMAIN_FORM.matches(value)


@lru_cache(_CACHED)
def dns_subdomain(value: str) -> Faults:
    """Check an RFC 1123 subdomain, which is the name of most objects."""
    return _SUBDOMAIN_FORM.faults(value)


def wildcard_subdomain(value: str) -> Faults:
    """Check a host name that begins with an asterisk label, such as the host of an Ingress."""
    return _WILDCARD_FORM.faults(value)


@lru_cache(_CACHED)
def dns1035_label(value: str) -> Faults:
    """Check an RFC 1035 label, which is the name of a Service."""
    return _DNS1035_FORM.faults(value)


@lru_cache(_CACHED)
def path_segment(value: str) -> Faults:
    """Check a path segment, which is the name of a Role and other RBAC objects."""
    return (f"may not be '{value}'",) if value in (".", "..") else path_prefix(value)


def path_prefix(value: str) -> Faults:
    """Check the beginning of a path segment."""
    return tuple(f"may not contain '{sign}'" for sign in "/%" if sign in value)


@lru_cache(_CACHED)
def qualified_name(value: str) -> Faults:
    """Check a label key, taint key or extended resource: a name with an optional DNS prefix and slash."""
    rule = (
        "must consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    )
    examples = ("MyName", "my.name", "123-abc")
    faults: list[str] = []
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        wrong = "a qualified name " + does_not_match(rule, _QUALIFIED, *examples)
        return (f"{wrong} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    if slash:
        if not prefix:
            faults.append("prefix part must be non-empty")
        else:
            faults.extend(f"prefix part {fault}" for fault in dns_subdomain(prefix))
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part " + too_long(63))
    if len(name) > _LONGEST_MATCHED or not _QUALIFIED_RE.fullmatch(name):
        faults.append("name part " + does_not_match(rule, _QUALIFIED, *examples))
    return tuple(faults)


@lru_cache(_CACHED)
def label_value(value: str) -> Faults:
    return _LABEL_VALUE_FORM.faults(value)


@lru_cache(_CACHED)
def port_name(value: str) -> Faults:
    faults = []
    if len(value) > 15:
        faults.append(too_long(15))
    if not _PORT_CHARACTERS.fullmatch(value):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in value):
        faults.append("must contain at least one letter (a-z)")
    if "--" in value:
        faults.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return tuple(faults)


def percent(value: str) -> Faults:
    if _PERCENT.fullmatch(value):
        return ()
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return (does_not_match(rule, "[0-9]+%", "1%", "93%"),)
