"""Command lines from an assistant: the check whether a verb is allowed, and its execution.

Assistants can neither read nor write files on this machine. A flag that names a file accepts only `-`, which is the
input given with the command.
"""

import argparse
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Final, Never

import attrs

from kschedd.api.text.similar import allowed_names
from kschedd.assistants.tool import ToolError
from kschedd.rpc.errors import ConnectionLostError
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import UsageError
from kschedd.verbs.command_line.session import DaemonClient, VerbSession
from kschedd.verbs.table import BY_NAME, FAILED, WRONG_USE, find_verb, run_words, short_words

READING: Final = ("get", "describe", "explain", "events", "queue", "decisions", "top", "spread", "expect", "weights")
WRITING: Final = (
    *("apply", "create", "delete", "patch", "replace", "scale", "label", "annotate", "taint", "cordon", "uncordon"),
    *(
        "drain",
        "evict",
        "rollout",
        "set",
        "node",
        "expose",
        "run",
        "activate",
        "allow",
        "reject",
        "queue",
        "config undo",
    ),
)
#: the parser's attributes for flags that name files
FILE_FLAGS: Final = ("filename", "patch_file", "from_file", "from_env_file", "pools")
_OUTPUTS: Final = ("go-template-file", "custom-columns-file", "templatefile")
_INPUT_FLAGS: Final = {
    **dict.fromkeys(("apply", "create", "delete", "explain", "replace"), "-f"),
    "patch": "--patch-file",
}


@attrs.define(eq=False)
class CommandFailed(ToolError):
    """The error for a verb that failed; `why` is its output."""


@attrs.define(eq=False)
class Reconnecting:
    """A client of the daemon that connects on first use, and again after the connection was lost."""

    _connect: Callable[[], DaemonClient]
    _client: DaemonClient | None = attrs.field(default=None, init=False)

    def call(self, method: str, /, *args: Any, **named: Any) -> Any:
        if self._client is None:
            self._client = self._connect()
        try:
            return self._client.call(method, *args, **named)
        except ConnectionLostError:
            self._client = None
            raise

    def subscribe(self, method: str, /, **named: Any) -> Never:
        raise ToolError("changes cannot be streamed to an assistant: call again")


@attrs.frozen(eq=False)
class ServedCluster:
    """The cluster that the tools read and change.

    `now` returns the time in seconds since the epoch; `sleep` lets time pass, at most `patience_s` seconds in one call
    of a tool. `run_to_rest` runs all work that a change causes; this function is given for a cluster whose time
    advances only on request.
    """

    daemon: DaemonClient
    now: Callable[[], float]
    sleep: Callable[[float], None]
    patience_s: float = 60.0
    run_to_rest: Callable[[], None] = lambda: None


def one_word(what: str, text: str) -> str:
    """Return the text if it is a single name and not a flag. Raises ToolError."""
    if not text or text.startswith("-") or "/" in text or "," in text:
        raise ToolError(f'{what} "{text}": a single {what} is expected')
    return text


def words_in(command: str) -> list[str]:
    """Return the words of a command line. Raises ToolError."""
    try:
        words = shlex.split(command)
    except ValueError as wrong:
        raise ToolError(f"{command!r}: {wrong}: quote as in a shell") from wrong
    return words[1:] if words[:1] in (["kschedd"], ["kubectl"]) else words


def checked_words(words: Sequence[str], given: str, allowed: Sequence[str]) -> list[str]:
    """Return the words if they are allowed. If there is an input, add the flag that reads the input.

    Raises ToolError.
    """
    if not words:
        raise ToolError(f"which command? Allowed are {', '.join(allowed)}")
    words = short_words(words)
    verb = words[0]
    if not {verb, getattr(BY_NAME.get(verb), "whole", verb)} & {*allowed}:
        raise ToolError(f'"{verb}" is not allowed here{allowed_names(verb, allowed)}')
    flag = _INPUT_FLAGS.get(verb)
    whole = [*words, flag, "-"] if given.strip() and flag is not None and flag not in words else list(words)
    try:
        _check_files(find_verb(verb).parser().read(whole[1:]))
    except UsageError as wrong:
        raise ToolError(str(wrong)) from wrong
    return whole


def _check_files(options: argparse.Namespace) -> None:
    for name in FILE_FLAGS:
        value = getattr(options, name, None)
        for file in value if isinstance(value, list) else [value]:
            if file not in (None, "", "-"):
                raise ToolError(f"{file}: files are not read: pass the text as `input`, and - as the file name")
    if str(getattr(options, "output", "")).removeprefix("=").startswith(_OUTPUTS):
        raise ToolError("-o: files are not read: pass the template itself")


def session_on(target: ServedCluster, printed: list[str], complaints: list[str], given: str = "") -> VerbSession:
    """Return a session that appends its output to these lists."""
    return VerbSession(
        lambda: target.daemon,
        printed.append,
        complaints.append,
        now=target.now,
        sleep=_patient(target),
        read_input=given.encode,
        streams=False,
    )


def run(target: ServedCluster, words: Sequence[str], given: str = "", *, fork: str = "") -> str:
    """Return the output of a verb that runs in a fork or in the cluster itself.

    Raises CommandFailed with the output if the verb fails.
    """
    printed: list[str] = []
    complaints: list[str] = []
    session = session_on(target, printed, complaints, given)
    status = run_words(session, ["in", fork, *words] if fork else words)
    if status in (FAILED, WRONG_USE):
        raise CommandFailed("".join((*complaints, *printed)).strip() or f"{words[0]} failed")
    return "".join((*printed, *complaints))


def _patient(target: ServedCluster) -> Callable[[float], None]:
    left = target.patience_s

    def wait(pause: float) -> None:
        nonlocal left
        left -= pause
        if left < 0:
            raise RpcError("timeout", f"the command takes longer than {target.patience_s:g} s: check again later")
        target.sleep(pause)

    return wait
