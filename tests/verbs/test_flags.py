"""Tests that each flag has one meaning in all of kschedd's commands, and kubectl's meaning in its verbs."""

from collections.abc import Iterator

import pytest

from kschedd.cli import main
from kschedd.verbs.command_line.parsing import Flag
from kschedd.verbs.table import VERBS
from tests.command_parsers import command_parsers

#: The meaning of each flag, which occurs in the help texts of all its commands.
MEANINGS = {
    "--limit": ("N", "print at most N "),
    "--force": ("", "overwrite an existing file"),
    "--plugin": ("FILE.py", "a Python file with plugins"),
    "--redact": ("", "replace "),
    "-f": ("", ""),  # input: see below
    "--wait": ("", ""),  # kubectl's only
}
#: meaning of -f, which reads manifests except in `config`
INPUTS = {"config": "a configuration file, or - for standard input", "check": "the manifests to check"}
#: commands that keep a flag with another meaning, because scripts use it
KEPT = {"--limit": {"run", "capacity"}}
KUBECTL = {
    "--force": {"delete", "drain", "replace"},
    "--wait": {"delete"},
    "-f": {"apply", "create", "delete", "diff", "logs", "replace", "rollout"},
}


def _flags() -> Iterator[tuple[str, Flag]]:
    for verb in VERBS:
        for flag in verb.parser().noted:
            yield verb.name, flag
    for name, parser in command_parsers():
        for flag in parser.noted:
            yield name, flag


@pytest.mark.parametrize("name", MEANINGS)
def test_a_flag_has_one_meaning(name: str) -> None:
    metavar, meaning = MEANINGS[name]
    uses = {command: flag for command, flag in _flags() if name in flag.names}
    ours = {
        command: flag
        for command, flag in uses.items()
        if command not in KUBECTL.get(name, set()) | KEPT.get(name, set())
    }
    assert uses, "the flag is expected somewhere"
    if name == "-f":
        manifests = "a file, a folder"
        wrong = {
            command: flag.help
            for command, flag in ours.items()
            if not flag.help.removeprefix("manifests: ").startswith(manifests) and flag.help != INPUTS.get(command)
        }
        assert wrong == {}
    elif name == "--wait":
        assert ours == {}
    else:
        wrong = {
            command: f"{flag.metavar} {flag.help}"
            for command, flag in ours.items()
            if flag.metavar != metavar or not flag.help.startswith(meaning)
        }
        assert wrong == {}


@pytest.mark.parametrize(
    ("line", "present"),
    [
        ("repl -f script.txt", "--script"),
        ("repl --file script.txt", "--script"),
        ("replay a.rec --redact b.rec", "--redact-to"),
        ("replay a.rec --attach -f script.txt", "--script"),
        ("nodes-needed --shape node.yaml --limit 3", "--max-nodes"),
        ("allow web --plugin Gang", "--plugin-name"),
        ("reject web --plugin Gang", "--plugin-name"),
        ("debug break add --plugin Gang", "--plugin-name"),
    ],
)
def test_an_earlier_flag_is_answered_with_its_present_name(
    line: str, present: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    assert f"was renamed to {present}" in capsys.readouterr().err
