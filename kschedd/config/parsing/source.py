"""The single YAML or JSON document of a configuration, parsed as manifests are."""

from __future__ import annotations

from kschedd.api.schemas.fields import steps
from kschedd.api.text.documents import Document, read_documents
from kschedd.config.parsing.faults import ConfigError, ConfigErrors


def read_document(text: str, source: str) -> Document:
    """The single document in `text`; raises `ConfigErrors` if there is none, several, or one with faults."""
    documents = list(read_documents(text.removeprefix("\ufeff")))
    if not documents:
        raise ConfigErrors((ConfigError(source, 0, "$", None, "there is no configuration in it"),))
    faults = [
        ConfigError(source, fault.line, path_of(fault.path), fault.value, fault.why)
        for document in documents
        for fault in document.faults
    ]
    if len(documents) > 1:
        line = documents[1].line_of(())
        faults.append(ConfigError(source, line, "$", None, "more than one document, where one is expected"))
    if faults:
        raise ConfigErrors(tuple(faults))
    return documents[0]


def path_of(parts: tuple[str | int, ...]) -> str:
    path = "$"
    for part in parts:
        path = child_path(path, part)
    return path


def child_path(path: str, key: str | int) -> str:
    """`$.profiles` and 0 make `$.profiles[0]`; a key that is not an identifier is put in brackets, too."""
    return f"{path}.{key}" if isinstance(key, str) and key.isidentifier() else f"{path}[{key}]"


def line_in(document: Document, path: str) -> int:
    """The line of the value at `path`, or of its nearest existing ancestor."""
    return document.line_of(steps(path.removeprefix("$").removeprefix(".")))
