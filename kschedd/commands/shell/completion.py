"""`kschedd completion bash|zsh|fish`: prints a shell script that gets its completions from `kschedd __complete`.

The script contains no grammar. At each Tab, verbs and flags come from the tables used for `--help`, and object names
from a running daemon.
"""

import argparse
import importlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kschedd.verbs.command_line.overview import brief
from kschedd.verbs.command_line.parsing import NotingParser
from kschedd.verbs.completing import CompletionCandidate, candidates, flags_of, split, version_candidates
from kschedd.verbs.table import GROUPS

_BASH: Final = r"""# bash completion for kschedd.  To have it in every session: kschedd completion bash > \
#   ${XDG_DATA_HOME:-~/.local/share}/bash-completion/completions/kschedd
_kschedd() {
    local line=${COMP_LINE:0:COMP_POINT} word=${COMP_WORDS[COMP_CWORD]} whole candidate name
    [[ $word == [=:] ]] && word=
    # What bash takes for the last word may be a part of it: it breaks words at = and : as well.
    whole=${line##*[[:space:]]}
    COMPREPLY=()
    while IFS= read -r candidate; do
        name=${candidate%%$'\t'*}
        name=${name#"${whole%"$word"}"}
        COMPREPLY+=("$name")
    done < <("${COMP_WORDS[0]}" __complete "${line#*"${COMP_WORDS[0]}"}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/:,] ]]; then compopt -o nospace; fi
}
complete -o default -o nosort -F _kschedd kschedd
"""
_ZSH: Final = r"""#compdef kschedd
# zsh completion for kschedd.  To have it in every session, where $fpath looks: kschedd completion zsh > _kschedd
_kschedd() {
    local text="${(j: :)${(@q)words[2,CURRENT-1]}} $PREFIX" name meaning
    local -a closed plain open
    while IFS=$'\t' read -r name meaning; do
        if [[ $name == *[=/:] ]]; then open+=("$name")
        elif [[ -n $meaning ]]; then closed+=("${name//:/\\:}:$meaning")
        else plain+=("$name"); fi
    done < <(${words[1]} __complete "$text" 2>/dev/null)
    (( $#closed )) && _describe -V 'kschedd' closed
    (( $#plain )) && compadd -V plain -- $plain
    (( $#open )) && compadd -V open -S '' -- $open
    (( $#closed + $#plain + $#open )) || _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _kschedd "$@"; else compdef _kschedd kschedd; fi
"""
_FISH: Final = r"""# fish completion for kschedd.  To have it in every session: kschedd completion fish > \
#   ~/.config/fish/completions/kschedd.fish
function __kschedd_complete
    set -l text (commandline -cp | string replace -r '^\s*\S+\s?' '')
    set -l found (kschedd __complete "$text" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c kschedd -f -k -a '(__kschedd_complete)'
"""
SCRIPTS: Final[Mapping[str, str]] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "completion",
        help="print a completion script",
        description=(
            "Print a script for completion of commands, flags and names of live objects. For the current session: "
            "source <(kschedd completion bash), or: kschedd completion fish | source."
        ),
    )
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="the shell")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    print(SCRIPTS[options.shell], end="")
    return 0


def parser_of(command: str, modules: Mapping[str, tuple[str, str]]) -> NotingParser:
    """Return the parser of a command that has its own module."""
    root = NotingParser(prog="kschedd")
    importlib.import_module(modules[command][0]).add_parser(root.add_subparsers(parser_class=NotingParser))
    return root.commands[command]


def complete(text: str, modules: Mapping[str, tuple[str, str]], connect: Callable[[str | None], Any]) -> int:
    """Print the completions of a line as `name<TAB>description`. `connect` is called with the value of --socket."""
    from kschedd.commands.shell.shell_names import ShellNames

    words, last = split(text)
    socket: str | None = None
    while words and words[0].startswith("--socket"):
        _, equals, value = words.pop(0).partition("=")
        if not equals and words:
            value = words.pop(0)
        socket = value
    found: list[CompletionCandidate] = []
    if words and words[0] in modules:
        found = _of_command(words[1:], last, parser_of(words[0], modules))
    if not words or words[0] not in modules or words[0] in GROUPS:
        others = {name: what for name, (_, what) in modules.items()} | {"help": "List the commands, or describe one."}
        namespace = _value_of(words, ("-n", "--namespace")) or "default"
        text = " ".join([*map(_quoted, words), last])
        found += candidates(text, ShellNames(lambda: connect(socket)), namespace, others, short=False)
    for candidate in {each.text: each for each in found}.values():
        print(f"{candidate.text}\t{candidate.meaning}" if candidate.meaning else candidate.text)
    return 0


def _of_command(words: Sequence[str], last: str, parser: NotingParser) -> list[CompletionCandidate]:
    """Return completions of subcommands, flags, and values with fixed choices.

    The shell itself completes file names.
    """
    for word in words:
        parser = parser.commands.get(word, parser)
    noted = parser.noted
    before = next((flag for flag in noted if words and words[-1] in flag.names), None)
    if before is not None and before.metavar:
        found = [CompletionCandidate(choice) for choice in before.choices]
        found = list(version_candidates(last)) if "--kube-version" in before.names else found
    elif last.startswith("-"):
        found = flags_of(noted)
    else:
        found = [
            CompletionCandidate(name, brief(sub.description or "")) for name, sub in sorted(parser.commands.items())
        ] or [CompletionCandidate(choice) for flag in noted if not flag.names for choice in flag.choices]
    return [each for each in found if each.text.startswith(last) and each.text != last]


def _value_of(words: Sequence[str], flags: Sequence[str]) -> str:
    for word, value in itertools.pairwise(words):
        if word in flags:
            return value
    return ""


def _quoted(word: str) -> str:
    return "'" + word + "'" if any(char.isspace() for char in word) or not word else word
