"""Messages for wrong command lines, in kschedd's format, with the usage that was probably intended."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from kschedd.api.text.similar import allowed_names, did_you_mean

_MANIFESTS: Final = (".yaml", ".yml", ".json")
_FORMS: Final = ("wide", "yaml", "json", "name")  # values of -o that users write as flags
#: units of durations as users write them, without the plural's s
_UNITS: Final = {
    **dict.fromkeys(("", "sec", "second"), "s"),
    **dict.fromkeys(("m", "min", "minute"), "m"),
    **dict.fromkeys(("h", "hour"), "h"),
    **dict.fromkeys(("d", "day"), "d"),
}
#: usage for a command that got unexpected arguments
_USE: Final = {
    "run": "; `kschedd run NAME --image IMAGE` creates a pod",
    "repl": "; `kschedd repl --script FILE` runs the commands of a file",
}
_NODES: Final = "; `node add NODE --count N` copies a node, `apply -f NODE.yaml` creates a node of another size"
_KUSTOMIZE: Final = "; kustomize is not supported: build the manifests elsewhere and apply the result with -f -"
_NUMBERS: Final = {"int": "a whole number", "float": "a number", "whole_number": "a number from 1 up"}


def clearer(
    message: str, flags: Sequence[str], renamed: Mapping[str, str] = {}, words: Sequence[str] = (), command: str = ""
) -> str:
    """Return an error message of argparse in kschedd's format.

    `flags` are the flags of the command, `renamed` maps former names of flags to current names, `command` is its name,
    and `words` are the words after it.
    """
    missing = message.removeprefix("the following arguments are required: ")
    if missing != message:
        if negative := next((word for word in words if re.match(r"-\d", word)), ""):
            return f'{missing} "{negative}": must not be negative'
        hint = _file_flag(words, flags, command) if "--filename" in missing else ""
        hint = _KUSTOMIZE if hint == "" and {"-k", "--kustomize"} & {*words} else hint
        return f"{missing} {'are' if ', ' in missing else 'is'} required{hint}"
    unknown = message.removeprefix("unrecognized arguments: ")
    if unknown != message:
        if unknown.startswith("-"):
            flag = unknown.split()[0].partition("=")[0]
            if command in ("create", "node") and flag in ("--cpu", "--memory", "--count"):
                return f"unknown flag {flag}{_NODES}"
            return _unknown_flag(flag, flags, renamed)
        return f"unexpected argument {unknown or repr(unknown)}{_unexpected(unknown.split(), flags, words, command)}"
    argument = re.fullmatch(r"argument ([^:]+): (.*)", message, re.DOTALL)
    return message if argument is None else _of_argument(argument[1], argument[2], flags, words)


def _unexpected(unknown: Sequence[str], flags: Collection[str], words: Sequence[str], command: str) -> str:
    """Return the usage that was probably intended with unexpected arguments, or ""."""
    at = words.index(unknown[0]) if unknown and unknown[0] in words else 0
    before = words[at - 1] if at else ""
    if before.isdecimal() and (unit := _UNITS.get(unknown[0].removesuffix("s"))):
        return f'; did you mean "{before}{unit}"?'
    return _file_flag(unknown, flags, " ".join([command, *words[:at]]).strip()) or _USE.get(command, "")


def _of_argument(argument: str, why: str, flags: Sequence[str], words: Sequence[str]) -> str:
    """Return the message about one argument."""
    name = argument.rpartition("/")[2]
    if number := re.fullmatch(r"invalid (int|float|whole_number) value: '(.*)'", why, re.DOTALL):
        return f'{name} "{number[2]}": {_NUMBERS[number[1]]} is expected'
    if why.startswith("expected one argument"):
        return f"{argument} requires a value"
    if choice := re.fullmatch(r"invalid choice: '?(.*?)'? \(choose from (.*)\)", why, re.DOTALL):
        known = [each.strip().strip("'") for each in choice[2].split(",")]
        what = name if argument.startswith("-") else "unknown command"
        return f'{what} "{choice[1]}"{allowed_names(choice[1], known)}'
    if why.startswith("ignored explicit argument"):  # argparse parses -wide as -w with the value "ide"
        short = argument.partition("/")[0]
        word = next((each for each in words if each.startswith(short) and len(each) > len(short)), short)
        return _unknown_flag(word, flags, {})
    return f"{argument}: {why}"


def _unknown_flag(flag: str, flags: Sequence[str], renamed: Mapping[str, str]) -> str:
    if flag in renamed:
        return f"{flag} was renamed to {renamed[flag]}"
    if "--output" in flags and flag.lstrip("-") in _FORMS:
        return f'unknown flag {flag}; did you mean "-o {flag.lstrip("-")}"?'
    return f"unknown flag {flag}{did_you_mean(flag, flags)}"


def _file_flag(words: Sequence[str], flags: Collection[str], command: str) -> str:
    """Return `; did you mean "apply -f app.yaml"?` if a word is a file and the command takes files with -f."""
    file = next(filter(is_file, words), "")
    if not file or "-f" not in flags or "-f" in words:
        return ""
    return f'; did you mean "{command}{" " if command else ""}-f {file}"?'


def is_file(word: str) -> bool:
    """Return whether a word is probably the path of a manifest."""
    return word.endswith(_MANIFESTS) or (not word.startswith("-") and "/" in word and Path(word).exists())
