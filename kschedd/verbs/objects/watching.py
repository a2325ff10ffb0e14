"""watch: repeats another verb. The caller passes functions that find and run this verb."""

import argparse
import re
from collections.abc import Callable, Sequence
from functools import partial

import attrs

from kschedd.printing.terminal.screen import first_screen, rows_of
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError
from kschedd.verbs.command_line.grammar import UsageError, Verb, VerbParser
from kschedd.verbs.command_line.parsing import duration
from kschedd.verbs.command_line.session import VerbSession

_AGE = re.compile(r"\s+|\x1b\[\d*m|\b(\d+[smhdy]){1,2}\b")
Find = Callable[[Sequence[str]], Verb]
Run = Callable[[VerbSession, Sequence[str]], int]


def _watch_words(words: VerbParser) -> None:
    words.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="the command to repeat")
    words.add_argument(
        "-i", "--interval", type=duration, default=1.0, metavar="DURATION", help="time between two runs (1s)"
    )
    words.add_argument("--times", type=int, default=0, metavar="N", help="stop after N runs; default: no limit")


def watch(find: Find, run: Run, session: VerbSession, options: argparse.Namespace) -> int:
    """Repeat another verb and show its output until the user ends it.

    The verb continues if the daemon restarts.
    """
    if not options.command:
        raise UsageError("watch requires a command, such as: watch get pods")
    if find(options.command).name == "watch":
        raise UsageError("watch cannot watch itself")
    if options.interval <= 0:
        raise UsageError(f"--interval {options.interval:g}: must be greater than 0s")
    looks = 0
    before: list[str] | None = None  # lines of the previous output
    screen = session.style.width > 0
    if screen:
        session.command("\x1b[?1049h")  # alternate screen; the previous content is restored at the end
    try:
        while True:
            shown: list[str] = []
            inner = attrs.evolve(session, write=shown.append, write_error=shown.append)
            try:
                inner._daemon = session.daemon
                code = run(inner, options.command)
            except (ConnectionLostError, NoDaemonError) as lost:
                if not looks:
                    raise
                inner.error(f"{lost}; looking again")
                session.forget_daemon()
                code = 1
            text = "".join(shown)
            every = f"every {options.interval:g} s: {' '.join(options.command)}    (Ctrl-C ends)"
            if screen:
                style = session.measure() if session.measure is not None else session.style  # may have been resized
                heading = style.paint(every, "dim") + "\n\n"
                taken = rows_of(every, style.width) + 1
                session.command("\x1b[H\x1b[2J")
                session.write(heading + first_screen(marked(before, text, style), style, taken))
                before = text.splitlines()
            else:
                session.write(text)
            looks += 1
            if code == 2 or looks == options.times:
                return code
            session.sleep(options.interval)
    finally:
        if screen:
            session.command("\x1b[?1049l")


def marked(before: Sequence[str] | None, text: str, style: TerminalStyle) -> str:
    """Return the text with new lines in bold; without colors, new lines are marked by a `*`.

    Differences in ages are ignored.
    """
    lines = text.splitlines()
    known = {_AGE.sub("", line) for line in before} if before is not None else None
    fresh = [known is not None and bool(line.strip()) and _AGE.sub("", line) not in known for line in lines]
    shown = [_emphasized(line, style) if new else line for line, new in zip(lines, fresh, strict=True)]
    return "".join(f"{line}\n" for line in shown)


def _emphasized(line: str, style: TerminalStyle) -> str:
    return style.paint(line, "bold") if style.color else f"{line} *"


def verb(find: Find, run: Run) -> Verb:
    return Verb(
        "watch",
        "Repeat a command and mark the lines that changed.",
        partial(watch, find, run),
        _watch_words,
        examples=("watch get pods -o wide", "watch -i 500ms queue"),
        completes="verb",
    )
