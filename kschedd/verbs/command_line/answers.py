"""Output of a method's answer as JSON or YAML (-o), for verbs whose default output is a table."""

from collections.abc import Callable
from typing import Any, Final

from kschedd.printing import documents
from kschedd.printing.terminal.tables import Table, render
from kschedd.verbs.command_line.grammar import output_of
from kschedd.verbs.command_line.session import VerbSession

FORMS: Final = ("table", "json", "yaml")


def write_listing(session: VerbSession, output: str, answer: Any, table: Callable[[Any], Table], nothing: str) -> int:
    """Write the answer in the format of -o (default: a table).

    If the answer is empty, write the text `nothing` to standard error.
    """
    if write_answer(session, output, answer):
        return 0
    if answer:
        session.write(render(table(answer), session.style))
    else:
        session.write_error(f"{nothing}\n")
    return 0


def write_answer(session: VerbSession, output: str, answer: Any) -> bool:
    """Write the answer if -o is json or yaml; otherwise return False, and the verb prints a table."""
    form = output_of(output, FORMS).form
    if form == "json":
        session.write(documents.as_json(answer))
    elif form == "yaml":
        session.write(documents.as_yaml(answer))
    return form != "table"
