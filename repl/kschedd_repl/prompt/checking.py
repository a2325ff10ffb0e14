"""Finds errors in a line while it is typed: unknown verbs, kinds and flags, and invalid values of flags.

The check is a pure function of the line and the known names. An incomplete word at the end of the line is an error only
if no known word begins with it.
"""

from collections.abc import Collection, Sequence

import attrs

from kschedd.api.schemas.kinds import KINDS, lookup
from kschedd.api.text.similar import did_you_mean
from kschedd.verbs.command_line.grammar import OUTPUTS, UsageError, VerbParser, output_of
from kschedd.verbs.completing import CompletionNames, parser_of
from kschedd.verbs.table import BY_NAME, BY_WHOLE, GROUPS, INSTEAD
from kschedd_repl.line import LineError, Token, read_line, tokens
from kschedd_repl.own import ALIASES, OWN


@attrs.frozen
class LineFault:
    """An error in the characters from `start` to `end`."""

    start: int
    end: int
    why: str


def line_faults(line: str, names: CompletionNames, macros: Collection[str] = ()) -> list[LineFault]:
    """Return the errors in the line, from left to right."""
    text = line.strip()
    if text.startswith("!") or text.split(maxsplit=1)[:1] == ["macro"]:
        return []
    found: list[LineFault] = []
    part: list[Token] = []
    parsed = tokens(line)
    for token in [*parsed, Token(len(line), len(line), ";", operator=True)]:
        if token.operator and token.text == ";":
            words = part[: next((place for place, each in enumerate(part) if each.operator), len(part))]
            found += _of_command(words, line, names, macros)
            part = []
        else:
            part.append(token)
    if not any(token.open for token in parsed):
        # An open quote is not an error while the line is typed. Other errors that concern the whole line are shown at
        # its end.
        try:
            read_line(line)
        except LineError as wrong:
            complete = line[-1:].isspace() or not (parsed and parsed[-1].operator)
            if complete and not line.rstrip().endswith(("|", ">")):
                found.append(LineFault(len(line.rstrip()) - 1, len(line.rstrip()), str(wrong)))
    return found


def _of_command(words: Sequence[Token], line: str, names: CompletionNames, macros: Collection[str]) -> list[LineFault]:
    if not words:
        return []
    if len(words) > 1 and words[0].text in ("kschedd", "kubectl"):
        words = words[1:]
    first, *rest = words
    if first.text in macros or first.text.startswith("!"):
        return []
    if rest and (verb := BY_WHOLE.get(f"{first.text} {rest[0].text}")) is not None:
        return _of_verb(verb.name, rest[1:], line, names)
    known = (*BY_NAME, *GROUPS, *OWN, *ALIASES, *macros, "kschedd", "kubectl")
    if first.text in INSTEAD and first.text not in known:
        return [_fault(first, f"{first.text} is not supported: {INSTEAD[first.text]}")]
    if first.text not in known:
        if _being_typed(first, line) and any(name.startswith(first.text) for name in known):
            return []
        return [_fault(first, f'unknown command "{first.text}"{did_you_mean(first.text, known)}')]
    if first.text in ("help", "?"):
        return _of_command(rest[:1], line, names, macros)
    if first.text == "watch":
        return _of_command(_watched(rest), line, names, macros)
    return _of_verb(first.text, rest, line, names) if first.text in BY_NAME else []


def _watched(words: Sequence[Token]) -> Sequence[Token]:
    """Return the verb that `watch` repeats with its words, after the flags of `watch` and their values."""
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        at += 1 if "=" in words[at].text else 2
    return words[at:]


def _of_verb(verb: str, words: Sequence[Token], line: str, names: CompletionNames) -> list[LineFault]:
    parser = parser_of(verb)
    found: list[LineFault] = []
    plain: list[Token] = []
    waits = ""  # the flag whose value is the next word
    for token in words:
        text = token.text
        if waits:
            found += _of_value(parser, waits, token, text, line)
            waits = ""
        elif text == "--" and not _being_typed(token, line):
            break
        elif text.startswith("-") and len(text) > 1 and not token.quoted and not _is_number(text):
            flag, equals, value = text.partition("=")
            if parser.flag(flag) is not None:
                if equals:
                    found += _of_value(parser, flag, token, value, line)
                waits = "" if equals or not parser.takes_value(flag) else flag
            elif not _is_short_group(parser, flag) and not (
                _being_typed(token, line) and any(known.startswith(flag) for known in parser.flags())
            ):
                found.append(_fault(token, f"unknown flag {flag}{did_you_mean(flag, parser.flags())}"))
        else:
            plain.append(token)
    if BY_NAME[verb].completes == "kinds" and plain:
        found += _of_kind(plain[0], line, names)
    return found


def _is_number(text: str) -> bool:
    return text[1:].replace(".", "", 1).isdigit()


def _is_short_group(parser: VerbParser, flag: str) -> bool:
    """Return whether a flag is a group of short flags in one word, such as `-Aw` or `-owide`.

    The value of the last flag may follow in the same word.
    """
    if flag.startswith("--"):
        return False
    for place, letter in enumerate(flag[1:]):
        if parser.flag(f"-{letter}") is None:
            return False
        if parser.takes_value(f"-{letter}"):
            return place + 2 < len(flag) or place > 0
    return True


def _of_value(parser: VerbParser, flag: str, token: Token, value: str, line: str) -> list[LineFault]:
    known = parser.flag(flag)
    if known is None or (_being_typed(token, line) and not value):
        return []
    if known.choices and value not in known.choices:
        if _being_typed(token, line) and any(choice.startswith(value) for choice in known.choices):
            return []
        near = did_you_mean(value, known.choices)
        return [_fault(token, f'{flag} "{value}": allowed are {", ".join(known.choices)}{near}')]
    if known.names[:1] == ("-o",):
        forms = known.help.removeprefix("one of ").split(", ")
        if _being_typed(token, line) and any(form.startswith(value) for form in forms):
            return []
        try:
            # A file with columns is not read after every key.
            if not value.startswith("custom-columns-file="):
                output_of(value, OUTPUTS if "wide" in forms and "jsonpath=TEMPLATE" in forms else forms)
        except UsageError as wrong:
            return [] if _being_typed(token, line) and "=" in value else [_fault(token, str(wrong))]
    return []


def _of_kind(token: Token, line: str, names: CompletionNames) -> list[LineFault]:
    """Return an error for an unknown kind, but only if its name resembles a known kind.

    Custom kinds may have names that are unknown here.
    """
    known = {
        *names.kinds,
        *(kind.singular for kind in KINDS),
        *(short for kind in KINDS for short in kind.short),
        "all",
    }
    for word in token.text.partition("/")[0].split(","):
        if not word or lookup(word).known or word in known or f"{word}s" in known:
            continue
        if _being_typed(token, line) and any(name.startswith(word) for name in known):
            continue
        near = did_you_mean(word, known)
        if near:
            return [_fault(token, f'there is no kind "{word}"{near}')]
    return []


def _being_typed(token: Token, line: str) -> bool:
    return token.end == len(line)


def _fault(token: Token, why: str) -> LineFault:
    return LineFault(token.start, token.end, why)
