"""Parsing of a line: commands separated by `;`, each with the shell command or file that receives its output.

    get pods -o json | jq '.items | length'; cordon node-a; get nodes > nodes.txt

Quotes and backslashes have the same meaning as in the shell. The text after an unquoted `|`, up to an unquoted `;`, is
passed unchanged to the shell. `>` and `>>` are operators only at the start of a word, so that a condition such as
`attempts>3` needs no quotes. `#` at the start of a word starts a comment. A command that starts with `!` is a shell
command as a whole. No I/O.

Raises LineError.
"""

import attrs

from kschedd.errors import KscheddError


@attrs.define(eq=False)
class LineError(KscheddError):
    """A line cannot be parsed."""

    why: str

    def __str__(self) -> str:
        return self.why


@attrs.frozen
class TypedCommand:
    """One command of a line. `pipe` is a shell command and `target` a file; at most one of them is set."""

    words: tuple[str, ...]
    text: str = ""  # the text as typed, without a pipe or redirection
    pipe: str = ""
    target: str = ""
    append: bool = False


@attrs.frozen
class Token:
    """A word or an operator, at the characters from `start` to `end`."""

    start: int
    end: int
    text: str  # without its quotes
    quoted: bool = False
    operator: bool = False
    open: bool = False  # True if the command ends within a quote or with a backslash


def tokens(line: str) -> list[Token]:
    """Return the words and operators of a line. The shell command after a pipe is one word, including its quotes."""
    found: list[Token] = []
    at = 0
    while at < len(line):
        char = line[at]
        if char.isspace():
            at += 1
        elif char == "#":
            break
        elif char == "!" and (not found or (found[-1].text == ";" and found[-1].operator)):
            found.append(_shell_command(line, at))
            at = found[-1].end
        elif char in "|;":
            found.append(Token(at, at + 1, char, operator=True))
            at += 1
            if char == "|":
                token = _shell_command(line, at)
                found.append(token)
                at = token.end
        elif char == ">":
            width = 2 if line.startswith(">>", at) else 1
            found.append(Token(at, at + width, line[at : at + width], operator=True))
            at += width
        else:
            token = _word(line, at)
            found.append(token)
            at = token.end
    return found


def _word(line: str, start: int) -> Token:
    text, quote, quoted, at = "", "", False, start
    while at < len(line):
        char = line[at]
        if char == "\\" and quote != "'":
            if at + 1 == len(line):
                return Token(start, at + 1, text, quoted, open=True)
            following = line[at + 1]
            # Within double quotes, a backslash is literal unless a character that can be escaped follows.
            text += following if not quote or following in '"\\' else char + following
            at += 2
            continue
        if quote:
            if char == quote:
                quote = ""
            else:
                text += char
        elif char in "'\"":
            quote, quoted = char, True
        elif char.isspace() or char in "|;":
            break
        else:
            text += char
        at += 1
    return Token(start, at, text, quoted, open=bool(quote))


def _shell_command(line: str, start: int) -> Token:
    quote, at = "", start
    while at < len(line):
        char = line[at]
        if char == "\\" and quote != "'":
            at += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == ";":
            break
        at += 1
    at = min(at, len(line))
    return Token(start, at, line[start:at].strip(), open=bool(quote))


def read_line(line: str) -> list[TypedCommand]:
    """Return the commands of a line, in order. Raises LineError before any of the commands runs."""
    found = tokens(line)
    for token in found:
        if token.open:
            raise LineError("no closing quotation: check the quotes" if not line.endswith("\\") else _ESCAPE)
    commands: list[TypedCommand] = []
    part: list[Token] = []
    for token in [*found, Token(len(line), len(line), ";", operator=True)]:
        if token.operator and token.text == ";":
            if part:
                commands.append(_command(line, part))
            part = []
        else:
            part.append(token)
    return commands


_ESCAPE = "no escaped character: the line ends with a backslash"


def _command(line: str, part: list[Token]) -> TypedCommand:
    place = next((place for place, token in enumerate(part) if token.operator), len(part))
    words = tuple(token.text for token in part[:place])
    if not words:
        raise LineError(f'a command is expected before "{part[place].text}"')
    command = TypedCommand(words, line[part[0].start : part[place - 1].end])
    if place == len(part):
        return command
    sign, rest = part[place].text, part[place + 1 :]
    if sign == "|":
        if not rest[0].text:
            raise LineError("a shell command is expected after |")
        return attrs.evolve(command, pipe=rest[0].text)
    if not rest or rest[0].operator:
        raise LineError(f"a file is expected after {sign}")
    if len(rest) > 1:
        raise LineError(f"nothing is expected after {sign} {rest[0].text}: a command has one pipe or one file")
    return attrs.evolve(command, target=rest[0].text, append=sign == ">>")


def quoted(word: str) -> str:
    """Return the word with the quotes that are necessary to type it."""
    if word and not any(char.isspace() or char in "'\"\\|;>#$" for char in word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"
