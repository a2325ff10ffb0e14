"""Regular expressions that cannot run away: RE2's syntax as far as selectors use it, matched in linear time.

CEL's `matches` takes a pattern from whoever writes a claim. Python's `re` tries alternatives one after the other and
can take for ever on `(a*)*b`; here all alternatives are followed at once, one character at a time, so the time is at
most the length of the text times the size of the pattern. The size is bounded too, counted repeats included.

Known: literals, `.`, classes (also \\d \\w \\s and [:alpha:]), groups, `|`, `* + ? {n,m}` (lazy forms too, which match
the same texts), `^ $ \\A \\z \\b \\B`, the flags `(?i)` and `(?s)` at the start. All else is refused, never misread.

Source: re2 wiki, Syntax.  Method: Thompson's construction, simulated with sets of states.
Errors: PatternError.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import attrs

from kschedd.errors import KscheddError

MOST_STATES: Final = 5_000
_MOST_REPEATS: Final = 1_000
_DEEPEST: Final = 100

Test = Callable[[str], bool]
_SPLIT, _CHAR, _ASSERT, _MATCH = range(4)
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}


@attrs.define(eq=False)
class PatternError(KscheddError):
    pattern: str
    why: str

    def __str__(self) -> str:
        return f"error parsing regexp: {self.why}: `{self.pattern}`"


def _digit(char: str) -> bool:
    return "0" <= char <= "9"


def _word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


def _space(char: str) -> bool:
    return char in "\t\n\f\r "


_CLASSES: Final[dict[str, Test]] = {"d": _digit, "w": _word, "s": _space}
_POSIX: Final[dict[str, Test]] = {
    "alnum": lambda char: char.isascii() and char.isalnum(),
    "alpha": lambda char: char.isascii() and char.isalpha(),
    "digit": _digit,
    "lower": lambda char: "a" <= char <= "z",
    "upper": lambda char: "A" <= char <= "Z",
    "punct": lambda char: char.isascii() and char.isprintable() and not char.isalnum() and char != " ",
    "space": lambda char: char in "\t\n\v\f\r ",
    "word": _word,
    "xdigit": lambda char: char in "0123456789abcdefABCDEF",
}


@attrs.define(eq=False)
class _State:
    kind: int
    test: Test | None = None
    place: str = ""  # of an assertion: ^ $ b B
    next: "list[_State]" = attrs.field(factory=list)


@attrs.frozen(eq=False)
class _Fragment:
    """A piece of the machine: where it begins, and the states whose `next` still wants its continuation."""

    start: _State
    ends: tuple[_State, ...]


@attrs.define(eq=False)
class _Compiler:
    pattern: str
    at: int = 0
    states: int = 0
    fold: bool = False
    dot_all: bool = False
    depth: int = 0

    def machine(self) -> _State:
        if self.pattern.startswith("(?"):
            closing = self.pattern.find(")")
            flags = self.pattern[2:closing] if closing > 0 else ""
            if flags and set(flags) <= set("is"):
                self.fold, self.dot_all = "i" in flags, "s" in flags
                self.at = closing + 1
        whole = self.alternatives()
        if self.at < len(self.pattern):
            raise PatternError(self.pattern, "unexpected )")
        self.join(whole.ends, self.state(_MATCH))
        return whole.start

    def state(self, kind: int, test: Test | None = None, place: str = "", *following: _State) -> _State:
        self.states += 1
        if self.states > MOST_STATES:
            raise PatternError(self.pattern, "expression nests or repeats too much")
        return _State(kind, test, place, list(following))

    @staticmethod
    def join(ends: tuple[_State, ...], onto: _State) -> None:
        for end in ends:
            end.next.append(onto)

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def alternatives(self) -> _Fragment:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise PatternError(self.pattern, "expression nests too deeply")
        found = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            found.append(self.sequence())
        self.depth -= 1
        if len(found) == 1:
            return found[0]
        split = self.state(_SPLIT, None, "", *(piece.start for piece in found))
        return _Fragment(split, tuple(end for piece in found for end in piece.ends))

    def sequence(self) -> _Fragment:
        empty = self.state(_SPLIT)
        ends: tuple[_State, ...] = (empty,)
        while self.peek() not in ("", "|", ")"):
            piece = self.repeated()
            self.join(ends, piece.start)
            ends = piece.ends
        return _Fragment(empty, ends)

    def repeated(self) -> _Fragment:
        begin = self.at
        piece = self.atom()
        source_end = self.at
        least, most = self.quantifier()
        if (least, most) == (1, 1):
            return piece
        # Copies are made by reading the same source again.
        resume = self.at
        copies = [piece]

        def another() -> _Fragment:
            self.at = begin
            copy = self.atom()
            assert self.at == source_end, "the same source is expected to read the same"
            copies.append(copy)
            return copy

        head = self.state(_SPLIT)
        ends: tuple[_State, ...] = (head,)
        for number in range(least):
            copy = piece if number == 0 else another()
            self.join(ends, copy.start)
            ends = copy.ends
        if most < 0:
            copy = piece if least == 0 else another()
            loop = self.state(_SPLIT, None, "", copy.start)
            self.join(ends, loop)
            self.join(copy.ends, loop)
            ends = (loop,)
        else:
            skipping: tuple[_State, ...] = ()
            for number in range(least, most):
                copy = piece if number == 0 else another()
                choice = self.state(_SPLIT, None, "", copy.start)
                self.join(ends, choice)
                skipping += (choice,)
                ends = copy.ends
            ends += skipping
        self.at = resume
        return _Fragment(head, ends)

    def quantifier(self) -> tuple[int, int]:
        """(least, most) repeats of what stands before; most < 0: without limit."""
        char = self.peek()
        if char in ("*", "+", "?") and char:
            self.at += 1
            least, most = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[char]
        elif char == "{" and (counts := self.counts()) is not None:
            least, most = counts
        else:
            return 1, 1
        if self.peek() == "?":
            self.at += 1
        if self.peek() and self.peek() in "*+?":
            raise PatternError(self.pattern, "invalid nested repetition operator")
        return least, most

    def counts(self) -> tuple[int, int] | None:
        closing = self.pattern.find("}", self.at)
        first, comma, last = self.pattern[self.at + 1 : max(closing, 0)].partition(",")
        if closing < 0 or not first.isdecimal() or (last and not last.isdecimal()):
            return None  # RE2 takes such a brace as a literal
        least = int(first)
        most = least if not comma else int(last) if last else -1
        if least > _MOST_REPEATS or most > _MOST_REPEATS or 0 <= most < least:
            raise PatternError(self.pattern, "invalid repeat count")
        self.at = closing + 1
        return least, most

    def atom(self) -> _Fragment:
        char = self.peek()
        self.at += 1
        if char == "(":
            return self.group()
        if char in ("*", "+", "?"):
            raise PatternError(self.pattern, "missing argument to repetition operator")
        if char in ("^", "$"):
            return self.assertion(char)
        if char == ".":
            return self.char((lambda _: True) if self.dot_all else (lambda one: one != "\n"))
        if char == "[":
            return self.char(self.char_class())
        if char == "\\":
            kind = self.peek()
            if kind in ("A", "z", "b", "B") and kind:
                self.at += 1
                return self.assertion({"A": "^", "z": "$"}.get(kind, kind))
            return self.char(self.escape())
        return self.char(self.literal(char))

    def group(self) -> _Fragment:
        if self.peek() == "?":
            closing = self.pattern.find(">", self.at)
            if self.pattern.startswith("?:", self.at):
                self.at += 2
            elif self.pattern.startswith(("?P<", "?<"), self.at) and closing > 0:
                self.at = closing + 1
            else:
                raise PatternError(self.pattern, "invalid or unsupported Perl syntax")
        inner = self.alternatives()
        if self.peek() != ")":
            raise PatternError(self.pattern, "missing closing )")
        self.at += 1
        return inner

    def char(self, test: Test) -> _Fragment:
        state = self.state(_CHAR, test)
        return _Fragment(state, (state,))

    def assertion(self, place: str) -> _Fragment:
        state = self.state(_ASSERT, None, place)
        return _Fragment(state, (state,))

    def literal(self, char: str) -> Test:
        if self.fold:
            folded = char.casefold()
            return lambda one: one.casefold() == folded
        return lambda one: one == char

    def escape(self) -> Test:
        """The test of the escape behind a backslash."""
        char = self.peek()
        self.at += 1
        if char.lower() in _CLASSES and char:
            test = _CLASSES[char.lower()]
            return (lambda one: not test(one)) if char.isupper() else test
        return self.literal(self.escaped(char))

    def escaped(self, char: str) -> str:
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "x":
            braced = self.peek() == "{"
            closing = self.pattern.find("}", self.at) if braced else self.at + 2
            digits = self.pattern[self.at + braced : max(closing, 0)]
            self.at = closing + braced
            if 0 < len(digits) <= 6 and all(digit in "0123456789abcdefABCDEF" for digit in digits):
                code = int(digits, 16)
                if code <= 0x10FFFF:
                    return chr(code)
        elif char and not (char.isascii() and char.isalnum()):
            return char
        raise PatternError(self.pattern, "invalid escape sequence")

    def char_class(self) -> Test:
        negated = self.peek() == "^"
        self.at += negated
        tests: list[Test] = []
        first = True
        while first or self.peek() != "]":
            if not self.peek():
                raise PatternError(self.pattern, "missing closing ]")
            tests.append(self.class_item())
            first = False
        self.at += 1
        members = tuple(tests)
        if self.fold:
            return lambda one: negated != any(t(one.lower()) or t(one.upper()) for t in members)
        return lambda one: negated != any(t(one) for t in members)

    def class_item(self) -> Test:
        if self.pattern.startswith("[:", self.at):
            closing = self.pattern.find(":]", self.at)
            name = self.pattern[self.at + 2 : max(closing, 0)]
            if closing > 0 and name.lstrip("^") in _POSIX:
                self.at = closing + 2
                test = _POSIX[name.lstrip("^")]
                return (lambda one: not test(one)) if name.startswith("^") else test
            raise PatternError(self.pattern, "invalid character class range")
        low = self.peek()
        self.at += 1
        if low == "\\":
            kind = self.peek()
            if kind.lower() in _CLASSES and kind:
                return self.escape()
            self.at += 1
            low = self.escaped(kind)
        if self.peek() != "-" or self.pattern[self.at + 1 : self.at + 2] in ("]", ""):
            return lambda one: one == low
        self.at += 1
        high = self.peek()
        self.at += 1
        if high == "\\":
            kind = self.peek()
            self.at += 1
            high = self.escaped(kind)
        if high < low:
            raise PatternError(self.pattern, "invalid character class range")
        return lambda one: low <= one <= high


@lru_cache(maxsize=256)
def _machine(pattern: str) -> _State:
    return _Compiler(pattern).machine()


def search(pattern: str, text: str) -> bool:
    """Whether the pattern matches somewhere in the text."""
    start = _machine(pattern)
    states: list[_State] = []
    for at in range(len(text) + 1):
        # A match may begin anywhere, so the start is among the states at every place.
        reached, matched = _closure([*states, start], text, at)
        if matched:
            return True
        if at == len(text):
            break
        char = text[at]
        states = [state.next[0] for state in reached if state.test is not None and state.test(char)]
    return False


def _closure(seeds: list[_State], text: str, at: int) -> tuple[list[_State], bool]:
    """All states that take a character, reachable from the seeds without one; and whether the end is."""
    seen: set[int] = set()
    found = []
    while seeds:
        state = seeds.pop()
        if id(state) in seen:
            continue
        seen.add(id(state))
        if state.kind == _MATCH:
            return [], True
        if state.kind == _CHAR:
            found.append(state)
        elif state.kind == _SPLIT or _holds(state.place, text, at):
            seeds += state.next
    return found, False


def _holds(place: str, text: str, at: int) -> bool:
    if place == "^":
        return at == 0
    if place == "$":
        return at == len(text)
    before = at > 0 and _word(text[at - 1])
    after = at < len(text) and _word(text[at])
    return (before != after) == (place == "b")
