"""Syntax highlighting of the command line: verbs and kinds, flags, quoted text, operators; errors are marked."""

from collections.abc import Callable, Sequence

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from kschedd.api.schemas.kinds import lookup
from kschedd.verbs.table import BY_NAME, BY_WHOLE, GROUPS
from kschedd_repl.line import Token, tokens
from kschedd_repl.own import own_name
from kschedd_repl.prompt.checking import LineFault

STYLE = Style.from_dict(
    {
        "prompt": "bold",
        "namespace": "ansicyan",
        "stopped": "bold ansiyellow",
        "verb": "bold ansigreen",
        "unknown": "ansired underline",
        "kind": "ansiblue",
        "flag": "ansicyan",
        "quoted": "ansiyellow",
        "operator": "bold ansimagenta",
        "comment": "ansibrightblack",
        "bottom-toolbar": "noreverse bg:ansibrightblack ansiwhite",
        "bottom-toolbar.off": "noreverse bg:ansired ansiwhite",
        "bottom-toolbar.fault": "noreverse bg:ansibrightblack ansibrightyellow",
    }
)


def colored(line: str, faults: Sequence[LineFault] = (), macros: Sequence[str] = ()) -> StyleAndTextTuples:
    """Return the line as pairs (style name, text)."""
    pieces: StyleAndTextTuples = []
    at = 0
    words: list[str] = []  # words of the command before the token
    wrong = {fault.start for fault in faults}
    for token in tokens(line):
        if token.start > at:
            pieces.append(("", line[at : token.start]))
        style = "class:unknown" if token.start in wrong else _style(token, words, macros)
        pieces.append((style, line[token.start : token.end]))
        at = token.end
        if token.operator:
            words = [] if token.text == ";" else ["|"]
        elif token.text not in ("watch", "help", "?", "kschedd", "kubectl") or words:
            words.append(token.text)
    if at < len(line):
        comment = line[at:].lstrip()
        blank = len(line) - at - len(comment)
        pieces += [("", line[at : at + blank])] if blank else []
        pieces += [("class:comment", comment)] if comment else []
    return pieces


def _style(token: Token, words: Sequence[str], macros: Sequence[str]) -> str:
    """Return the style of a token; `words` are the earlier words of its command, without `watch` and `help`."""
    if token.operator:
        return "class:operator"
    if words[:1] == ["|"]:
        return "class:quoted"
    if not words or " ".join((*words, token.text)) in BY_WHOLE:
        known = token.text in BY_NAME or token.text in GROUPS or own_name(token.text) or token.text in macros
        return "class:verb" if words or known else ""
    if token.quoted:
        return "class:quoted"
    if token.text.startswith("-") and len(token.text) > 1:
        return "class:flag"
    verb = BY_NAME.get(words[0])
    if len(words) == 1 and verb is not None and verb.completes == "kinds":
        kinds = [lookup(part.partition("/")[0]).known or part == "all" for part in token.text.split(",") if part]
        return "class:kind" if all(kinds) else ""
    return ""


class LineLexer(Lexer):
    """A lexer. `faults` returns the errors in a line, `macros` the names of macros; both are called after every key."""

    def __init__(self, faults: Callable[[str], Sequence[LineFault]], macros: Callable[[], Sequence[str]]) -> None:
        self._faults = faults
        self._macros = macros

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = [colored(line, self._faults(line), self._macros()) for line in document.lines]
        return lambda number: lines[number] if number < len(lines) else []
