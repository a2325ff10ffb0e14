"""The single YAML or JSON document of a configuration, parsed like a manifest."""

from __future__ import annotations

from kschedd.api.schemas.fields import steps
from kschedd.api.text.documents import Document, read_documents
from kschedd.config.parsing.faults import ConfigError, ConfigErrors


def read_document(text: str, source: str) -> Document:
    """Return the single document in `text`.

    Raise `ConfigErrors` if there is no document, if there are several, or if the document has faults.
    """
    documents = list(read_documents(text.removeprefix("\ufeff")))
    if not documents:
        raise ConfigErrors((ConfigError(source, 0, "$", None, "the file is empty: a configuration is required"),))
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
    """Return a child's path: Return the path of a child: `$.profiles` and 0 give `$.profiles[0]`.

    Keys that are no identifiers are put in brackets.
    """
    return f"{path}.{key}" if isinstance(key, str) and key.isidentifier() else f"{path}[{key}]"


def line_in(document: Document, path: str) -> int:
    """Return the line of the value at `path`, or of its nearest existing ancestor."""
    return document.line_of(steps(path.removeprefix("$").removeprefix(".")))
