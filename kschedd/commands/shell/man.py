"""`kschedd man`: prints manual pages in roff, generated from the tables of `--help`.

kschedd man | man -l -          the page of kschedd
kschedd man get | man -l -      the page of a verb or command
kschedd man --dir DIR           all of them as files, kschedd.1, kschedd-get.1 and so on
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.text.similar import did_you_mean
from kschedd.commands.shell.completion import parser_of
from kschedd.errors import KscheddError
from kschedd.verbs.command_line.grammar import UsageError
from kschedd.verbs.command_line.parsing import Flag, path_value

_STATUS: Final = (
    ("0", "Success; the answer is yes."),
    ("1", "Failure, with the reason on standard error; the answer is no."),
    ("2", "Wrong usage, or unusable input."),
    ("130", "Interrupted by Ctrl-C."),
)


@attrs.define(eq=False)
class UnwritablePage(KscheddError):
    file: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: cannot be written: {self.why}"


@attrs.frozen
class Page:
    """The content of the manual page of one command."""

    name: str  # name as typed after `kschedd`; "" for kschedd itself
    summary: str
    description: str
    flags: Sequence[Flag] = ()
    examples: Sequence[str] = ()
    commands: Sequence[tuple[str, str]] = ()

    @property
    def title(self) -> str:
        return f"kschedd-{self.name}" if self.name else "kschedd"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "man",
        help="manual pages",
        description="Print the manual page of kschedd, of a verb or of a command, in roff: kschedd man get | man -l -",
    )
    parser.add_argument("command", nargs="?", default="", metavar="COMMAND", help="a command; default: kschedd itself")
    parser.add_argument("--dir", type=path_value, metavar="DIR", help="write all pages into this directory instead")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from kschedd.cli import MOUNTED

    pages = {page.name: page for page in all_pages(MOUNTED)}
    if options.dir is None:
        if options.command not in pages:
            raise UsageError(f'there is no command "{options.command}"{did_you_mean(options.command, pages)}')
        print(roff(pages[options.command]), end="")
        return 0
    for page in pages.values():
        file = options.dir / f"{page.title}.1"
        try:
            options.dir.mkdir(parents=True, exist_ok=True)
            file.write_text(roff(page), encoding="utf-8")
        except OSError as wrong:
            raise UnwritablePage(str(file), wrong.strerror or str(wrong)) from wrong
    print(f"{len(pages)} pages in {options.dir}")
    return 0


def all_pages(modules: Mapping[str, tuple[str, str]]) -> Iterator[Page]:
    """Yield the pages of kschedd itself, then of commands, then of verbs."""
    from kschedd.verbs.table import VERBS

    commands = [*((name, what) for name, (_, what) in modules.items()), *((v.name, v.summary) for v in VERBS)]
    yield Page(
        "",
        "kube-scheduler as one local daemon",
        "kschedd makes the decisions of kube-scheduler, explains each of them, and can be queried, stopped and changed "
        "while it runs. Verbs use a running daemon, at the socket of --socket PATH, else $KSCHEDD_SOCKET, else one in "
        "the user's runtime directory.",
        (Flag(("--socket",), "PATH", "the daemon's socket"),),
        commands=sorted(commands),
    )
    verbs = {verb.name: verb for verb in VERBS}
    for name, (_, what) in modules.items():
        parser = parser_of(name, modules)
        description, noted, examples = parser.description or what, list(parser.noted), tuple[str, ...]()
        also_verb = verbs.pop(name, None)
        if also_verb is not None:  # the verb `run` and the command `run` share one page, which lists each flag once
            known = {flag for one in noted for flag in one.names}
            noted += [one for one in also_verb.parser().noted if not known.intersection(one.names)]
            description, examples = f"{description} As a verb: {also_verb.summary}", also_verb.examples
        yield Page(name, what, description, noted, examples)
    for verb in verbs.values():
        also = f" Also: {', '.join(verb.aliases)}." if verb.aliases else ""
        yield Page(verb.name, verb.summary, verb.summary + also, verb.parser("kschedd ").noted, verb.examples)


def roff(page: Page) -> str:
    """Return the page in the man(7) macro language."""
    command = f"kschedd {page.name}".strip()
    lines = [
        f'.TH "{page.title.upper()}" "1" "" "kschedd" "kschedd manual"',
        ".SH NAME",
        f"{_text(page.title)} \\- {_text(page.summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_text(command)}",
        " ".join(_synopsis(flag) for flag in page.flags) or "",
        ".SH DESCRIPTION",
        _text(page.description),
    ]
    if page.flags:
        lines.append(".SH OPTIONS")
        for flag in page.flags:
            lines += [".TP", _heading(flag), _text(flag.help or "(see the description)")]
    if page.commands:
        lines.append(".SH COMMANDS")
        for name, summary in page.commands:
            lines += [".TP", f"\\fB{_text(name)}\\fR", _text(summary)]
    if page.examples:
        lines += [".SH EXAMPLES", ".nf", *(_text(f"kschedd {example}") for example in page.examples), ".fi"]
    lines.append(".SH EXIT STATUS")
    for code, meaning in _STATUS:
        lines += [".TP", code, _text(meaning)]
    others = ", ".join(f"kschedd\\-{_text(name)}(1)" for name, _ in page.commands)
    lines += [".SH SEE ALSO", others or "kschedd(1)"]
    return "\n".join(line for line in lines if line) + "\n"


def _heading(flag: Flag) -> str:
    if not flag.names:
        return f"\\fI{_text(flag.metavar)}\\fR"
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in flag.names)
    return f"{names} \\fI{_text(flag.metavar)}\\fR" if flag.metavar else names


def _synopsis(flag: Flag) -> str:
    if not flag.names:
        return f"\\fI{_text(flag.metavar)}\\fR"
    value = f" \\fI{_text(flag.metavar)}\\fR" if flag.metavar else ""
    return f"[\\fB{_text(flag.names[0])}\\fR{value}]"


def _text(text: str) -> str:
    """Escape the text for roff."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
