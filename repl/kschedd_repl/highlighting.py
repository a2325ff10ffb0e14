"""Syntax highlighting of the command line: known verbs and kinds, flags, quoted text; unknown words are marked."""

import re
from collections.abc import Callable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from kschedd.api.kinds import lookup
from kschedd.verbs.table import BY_NAME
from kschedd_repl.completion import OWN_WORDS

STYLE = Style.from_dict(
    {
        "prompt": "bold",
        "namespace": "ansicyan",
        "verb": "bold ansigreen",
        "unknown": "ansired",
        "kind": "ansiblue",
        "flag": "ansicyan",
        "quoted": "ansiyellow",
        "comment": "ansibrightblack",
        "bottom-toolbar": "noreverse bg:ansibrightblack ansiwhite",
        "bottom-toolbar.off": "noreverse bg:ansired ansiwhite",
    }
)
_TOKEN = re.compile(r"""(\s+)|(\#.*$)|("[^"]*"?|'[^']*'?)|([^\s'"]+)""")


def coloured(line: str) -> StyleAndTextTuples:
    """The line as (style name, text) fragments."""
    pieces: StyleAndTextTuples = []
    words = 0
    verb = ""
    for match in _TOKEN.finditer(line):
        blank, comment, quoted, word = match.groups()
        text = match.group()
        if blank:
            style = ""
        elif comment:
            style = "class:comment"
        elif quoted:
            style = "class:quoted"
            words += 1
        else:
            style = _style(word, words, verb)
            if words == 0 or (words == 1 and verb in ("watch", "help")):
                verb = word
                words = 0
            words += 1
        pieces.append((style, text))
    return pieces


def _style(word: str, place: int, verb: str) -> str:
    if place == 0 or (place == 1 and verb in ("watch", "help")):
        return "class:verb" if word in BY_NAME or word in OWN_WORDS or word in ("quit", "detach") else "class:unknown"
    if word.startswith("-") and len(word) > 1:
        return "class:flag"
    known = BY_NAME.get(verb)
    if place == 1 and known is not None and known.completes == "kinds":
        kinds = [lookup(part.partition("/")[0]).known or part == "all" for part in word.split(",") if part]
        return "class:kind" if all(kinds) else ""
    return ""


class LineLexer(Lexer):
    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = [coloured(line) for line in document.lines]
        return lambda number: lines[number] if number < len(lines) else []
