"""-o json|yaml of a method's answer, for verbs that otherwise print a table of it."""

from typing import Any, Final

from kschedd.printing import documents
from kschedd.verbs.grammar import output_of
from kschedd.verbs.session import VerbSession

FORMS: Final = ("table", "json", "yaml")


def write_answer(session: VerbSession, output: str, answer: Any) -> bool:
    """Write the answer where -o asks for JSON or YAML; returns False where a table is asked for."""
    form = output_of(output, FORMS).form
    if form == "json":
        session.write(documents.as_json(answer))
    elif form == "yaml":
        session.write(documents.as_yaml(answer))
    return form != "table"
