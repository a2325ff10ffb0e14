"""The grammar of verbs: flags in any position, `-o` and its formats, errors that suggest the correct usage.

No I/O. Raises only UsageError.
"""

import argparse
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, Never, TypeVar

import attrs

from kschedd.api.schemas.decoding import VALIDATE
from kschedd.api.text.similar import allowed_names, did_you_mean
from kschedd.errors import KscheddError
from kschedd.verbs.command_line.parsing import Flag, NotingParser
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.usage_messages import clearer


@attrs.define(eq=False)
class UsageError(KscheddError):
    """A command line that cannot be parsed."""

    why: str
    verb: str = ""  # verb whose help the message mentions


_EXAMPLES_HEADER: Final = "examples:\n"

_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class VerbHelpFormatter(argparse.HelpFormatter):
    """Formatter that wraps the description but not the examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(_EXAMPLES_HEADER):
            return text
        return super()._fill_text(text, width, indent)


class VerbParser(NotingParser):
    """Parser of the arguments of a verb.

    `implied` maps flags that may be given without a value, such as --dry-run, to the implied value.
    """

    def __init__(self, verb: str, summary: str, program: str, whole: str = "") -> None:
        super().__init__(
            prog=program + (whole if program and whole else verb),
            description=f"{summary[:1].upper()}{summary[1:].rstrip('.')}.",
            add_help=False,
            allow_abbrev=False,
            formatter_class=VerbHelpFormatter,
        )
        self.verb = verb
        self.implied: dict[str, str] = {}
        self.takes_command = False  # true if the words after -- are a command for a container
        self.add_argument("-h", "--help", action="store_true", help="show this help")

    def error(self, message: str) -> Never:
        raise UsageError(clearer(message, self.flags(), self.renamed, self.given, self.verb), self.verb)

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments. Raises UsageError."""
        command: Sequence[str] = ()
        if self.takes_command and "--" in words:
            at = list(words).index("--")
            words, command = words[:at], words[at + 1 :]
        words = self.switched(words)
        self.given = [f"{word}={self.implied[word]}" if word in self.implied else word for word in words]
        options = self.parse_intermixed_args(self.given)
        if self.takes_command:
            options.command_words = list(command)
        return options

    def switched(self, words: Sequence[str], *, leading: bool = False) -> list[str]:
        """Replace `--flag=true` and `--flag=false` for flags without a value, as kubectl does.

        With `leading`, process only flags before the first positional argument.
        """
        switched: list[str] = []
        for place, word in enumerate(words):
            if word == "--" or (leading and not word.startswith("-")):
                return [*switched, *words[place:]]
            name, equals, value = word.partition("=")
            flag = self.flag(name) if equals and name.startswith("-") else None
            if flag is None or flag.metavar:
                switched.append(word)
            elif value in _TRUE:
                switched.append(name)
            elif value in _FALSE:
                switched = [before for before in switched if before not in flag.names]
            else:
                raise UsageError(f'{name} "{value}": expected true or false', self.verb)
        return switched

    def flags(self) -> list[str]:
        """Every flag, long flags first."""
        return sorted((name for flag in self.noted for name in flag.names), key=lambda name: (-len(name), name))

    def takes_value(self, name: str) -> bool:
        """Return whether the word after this flag is its value."""
        flag = self.flag(name)
        return flag is not None and bool(flag.metavar) and name not in self.implied

    def flag(self, name: str) -> Flag | None:
        return next((flag for flag in self.noted if name in flag.names), None)


def whole_number(text: str) -> int:
    """Parse a positive limit for the number of displayed items.

    For argparse: raises ValueError if the number is invalid.
    """
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def given_value(what: str, text: str) -> Any:
    """Return the single value in a JSON or YAML text; None if the text contains none or several.

    `what` is the name of the text in error messages. Raises UsageError.
    """
    from kschedd.api.text.documents import read_documents

    documents = list(read_documents(text))
    for document in documents:
        for fault in document.faults:
            raise UsageError(f"{what}: neither JSON nor YAML: line {fault.line}: {fault.why}")
    return documents[0].value if len(documents) == 1 else None


OUTPUTS = (
    "table",
    "wide",
    "yaml",
    "json",
    "name",
    "jsonpath=TEMPLATE",
    "jsonpath-as-json=TEMPLATE",
    "go-template=TEMPLATE",
    "go-template-file=TEMPLATE",
    "custom-columns=TEMPLATE",
    "custom-columns-file=TEMPLATE",
)
_EXAMPLES = {
    "jsonpath": '-o jsonpath="{.metadata.name}"',
    "jsonpath-as-json": '-o jsonpath-as-json="{.items[*].metadata.name}"',
    "go-template": '-o go-template="{{range .items}}{{.metadata.name}} {{end}}"',
    "go-template-file": "-o go-template-file=FILE",
    "custom-columns": "-o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName",
    "custom-columns-file": "-o custom-columns-file=FILE, which has a line of headers and a line of paths",
}


@attrs.frozen
class Output:
    """The output format: `form` is table, wide, yaml, json, name, or a form with a template, which is compiled.

    `template` is the template of jsonpath or go-template, the path of jsonpath-as-json, or the columns of
    custom-columns. The columns are given on the command line or in a file.
    """

    form: str = "table"
    template: Any = ()


def output_of(text: str, forms: Sequence[str] = OUTPUTS, folder: Path = Path()) -> Output:
    """Parse the value of -o; a relative path in it is relative to `folder`. Raises UsageError."""
    form, equals, template = text.removeprefix("=").partition("=")
    form = {"template": "go-template", "templatefile": "go-template-file"}.get(form, form)
    plain = [name for name in forms if "=" not in name]
    if f"{form}=TEMPLATE" in forms:
        if not template:
            raise UsageError(f"-o {form} requires a template: {_EXAMPLES[form]}")
        return _with_template(form, template, folder)
    if form not in plain or equals:
        raise UsageError(f'unknown output format "{text}"{did_you_mean(form, plain) or allowed_names(form, forms)}')
    return Output(form)


def _with_template(form: str, template: str, folder: Path) -> Output:
    from kschedd.printing.columns.custom_columns import CustomColumnsError, columns_of_file, columns_of_text
    from kschedd.printing.templates.go_template import GoTemplate, GoTemplateError
    from kschedd.printing.templates.jsonpath import JsonPathError, compile_path, compile_template

    try:
        if form == "jsonpath":
            return Output(form, compile_template(template))
        if form == "jsonpath-as-json":
            return Output(form, compile_path(template))
        if form == "go-template":
            return Output(form, GoTemplate(template))
        if form == "go-template-file":
            return Output("go-template", GoTemplate((folder / template).read_text("utf-8")))
        if form == "custom-columns":
            return Output(form, columns_of_text(template))
        return Output("custom-columns", columns_of_file((folder / template).read_text("utf-8")))
    except (JsonPathError, CustomColumnsError, GoTemplateError) as fault:
        raise UsageError(str(fault)) from fault
    except (OSError, UnicodeDecodeError) as wrong:
        raise UsageError(f"{template}: cannot be read: {getattr(wrong, 'strerror', '') or wrong}") from wrong


def output_flag(words: VerbParser, forms: Sequence[str] = OUTPUTS) -> None:
    words.add_argument("-o", "--output", default="table", metavar="FORM", help="one of " + ", ".join(forms))


def namespace_flags(words: VerbParser, *, everywhere: bool = False) -> None:
    words.add_argument("-n", "--namespace", metavar="NS", help="the namespace")
    if everywhere:
        words.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")


def namespace_of(session: VerbSession, options: argparse.Namespace) -> str | None:
    """Return the namespace to which the command applies; None means all namespaces."""
    if getattr(options, "all_namespaces", False):
        return None
    given = options.namespace
    return given.removeprefix("=") if given else session.namespace


def dry_run_flag(words: VerbParser) -> None:
    words.add_argument(
        "--dry-run",
        choices=("none", "client", "server"),
        default="none",
        help="print the result without changing anything",
    )
    words.implied["--dry-run"] = "server"


def yes_flag(words: VerbParser) -> None:
    words.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation (only the prompt asks)")


def may_go_on(session: VerbSession, options: argparse.Namespace, question: str) -> bool:
    """Ask for confirmation of an irreversible action if there is a prompt.

    If the user declines, report that nothing was done.
    """
    if options.yes or getattr(options, "dry_run", "none") != "none" or not session.asks_first():
        return True
    if session.confirm(question):
        return True
    session.write_error("Cancelled: nothing was changed.\n")
    return False


def validate_flag(words: VerbParser) -> None:
    words.add_argument(
        "--validate",
        choices=tuple(VALIDATE),
        default="strict",
        help="unknown fields: reject the object (strict), drop them with a warning (warn) or silently (ignore)",
    )
    words.implied["--validate"] = "strict"


def validation_of(options: argparse.Namespace) -> str:
    """Return the value of the daemon's validation parameter for --validate."""
    return VALIDATE[options.validate]


class LiveState(StrEnum):
    """State of the objects that completion offers as positional arguments of a verb: `Verb.live`."""

    PENDING = "pending pods"
    BOUND = "bound pods"
    WAITING = "pods that wait at Permit"
    CORDONED = "cordoned nodes"
    UNCORDONED = "nodes that are not cordoned"
    BREAKPOINTS = "breakpoints"
    FORKS = "forks"


@attrs.frozen
class Verb:
    """One verb: its arguments and its implementation. `run` returns the exit status."""

    name: str
    summary: str
    run: Callable[[VerbSession, argparse.Namespace], int]
    words: Callable[[VerbParser], None] = lambda words: None
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    #: kind of the positional arguments, for completion: "kinds" (kind, then names), "pod", "node", "verb", ""
    completes: str = ""
    #: for completion: state of the objects, if only objects in this state are useful
    live: LiveState | None = None
    #: exit status of a failure; 2 if the verb uses 1 for a regular answer
    failed: int = 1
    #: the whole name of a verb that belongs to a group, such as "debug step"
    whole: str = ""

    def parser(self, program: str = "") -> VerbParser:
        """Build the parser; `program` is the prefix of verbs in hints: "kschedd " is the prefix on the command line."""
        words = VerbParser(self.name, self.summary, program, self.whole)
        self.words(words)
        if self.examples:
            words.epilog = _EXAMPLES_HEADER + "".join(f"  {each}\n" for each in self.shown_examples(program))
        return words

    def shown_examples(self, program: str = "") -> list[str]:
        """Return the examples as a user types them: the program's name, then the verb's whole name."""
        name = self.whole if program and self.whole else self.name
        return [
            f"{program}{name}{example.removeprefix(self.name)}" if example.startswith(self.name) else program + example
            for example in self.examples
        ]


R = TypeVar("R", bound=Callable[[VerbSession, argparse.Namespace], int])
_DECLARED: Final[dict[Any, Verb]] = {}  # verbs, by the function that implements them


def verb(
    name: str, summary: str, words: Callable[[VerbParser], None] = lambda words: None, **more: Any
) -> Callable[[R], R]:
    """Return a decorator that declares a function as the implementation of a verb.

    `more` contains additional fields of `Verb`.
    """

    def declare(run: R) -> R:
        _DECLARED[run] = Verb(name, summary, run, words, **more)
        return run

    return declare


def verbs_of(module: ModuleType) -> list[Verb]:
    """Return the verbs that the functions of a module implement, in the order of the functions."""
    functions = (each for each in vars(module).values() if isinstance(each, FunctionType))
    return [_DECLARED[each] for each in functions if each in _DECLARED and each.__module__ == module.__name__]
