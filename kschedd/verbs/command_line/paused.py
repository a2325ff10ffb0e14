"""The hint that the debugger has stopped scheduling, for verbs that are affected by this."""

from kschedd.printing.reports.debugging import place_text
from kschedd.verbs.command_line.session import VerbSession


def note_if_paused(session: VerbSession) -> bool:
    """Write a hint to standard error if the debugger has stopped scheduling. Return whether scheduling is stopped."""
    stopped = session.daemon.call("debug.state").get("stopped")
    if not stopped:
        return False
    program = session.own_program or "kschedd "
    at = "at " if stopped.get("point") or stopped.get("outcome") else ""  # otherwise, the place begins with "before"
    session.hint(f"Scheduling is paused {at}{place_text(stopped)}; `{program}resume` continues it.")
    return True
