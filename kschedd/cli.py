"""`kschedd`: the command line. Verbs call a running daemon; the other commands run in this process.

Verbs must start quickly, so a command imports its modules only when it is called: `get` imports neither Trio nor
numpy. Exit status: 0 success or yes, 1 failure or no, 2 wrong usage or unusable input, 130 after Ctrl-C.
"""

import argparse
import errno
import importlib
import io
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final, Never

from kschedd.errors import KscheddError
from kschedd.verbs.command_line.parsing import NotingParser

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130

#: errors of a write to a full disk, to a closed stream, or to a terminal that has disconnected
_UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF, errno.EIO})

#: commands with a module of their own, which contains `add_parser(subparsers)`
MOUNTED: Final[Mapping[str, tuple[str, str]]] = {
    "demo": (
        "kschedd.commands.demo",
        "Show an example: a daemon, a cluster of three zones, where each pod went and why.",
    ),
    "run": ("kschedd.commands.run", "Start the daemon; with --image, kubectl's verb: create a pod."),
    "kubeconfig": ("kschedd.commands.kubeconfig", "Print a kubeconfig for the daemon's REST API."),
    "repl": ("kschedd.commands.repl", "Open a prompt with completion, history and a status bar; or run a script."),
    "simulate": ("kschedd.commands.studies.simulate", "Schedule pods in virtual time, without a daemon."),
    "sweep": (
        "kschedd.commands.studies.sweep",
        "Run many simulations: a product of inputs, resumable, on all cores or a cluster.",
    ),
    "plot": (
        "kschedd.commands.studies.plot",
        "Draw the tables of runs and sweeps: usage, fragmentation, waits, Pareto fronts.",
    ),
    "tune": (
        "kschedd.commands.studies.tune",
        "Search for weights and arguments that are best for objectives, with Optuna.",
    ),
    "workload": (
        "kschedd.commands.studies.workload",
        "Read traces of other clusters: figures, conversion, samples, fitted generators.",
    ),
    "replay": ("kschedd.commands.offline.replay", "Replay a recorded run and compare its decisions."),
    "lint": ("kschedd.commands.offline.lint", "Find what a Kubernetes release ignores or rejects in manifests."),
    "check": (
        "kschedd.commands.offline.check",
        "Check whether manifests fit into a cluster, for pull requests and CI.",
    ),
    "mcp": ("kschedd.commands.mcp", "Serve tools for language models (Model Context Protocol)."),
    "test": ("kschedd.commands.offline.test", "Run scenario files and check their expectations."),
    "plugin": ("kschedd.commands.plugin", "Create, check, list and reload scheduler plugins."),
    "evaluate": ("kschedd.commands.studies.evaluate", "Score a plugin by a suite of workloads."),
    "verify": ("kschedd.conformance.verify", "Compare with recorded decisions of kube-scheduler."),
    "journal": ("kschedd.commands.journal", "Verify, repair, compact or export the journal of a stopped daemon."),
    "snapshot": ("kschedd.commands.snapshot", "Save the whole state of a daemon in a file, or restore it."),
    "completion": ("kschedd.commands.shell.completion", "Print a completion script for bash, zsh or fish."),
    "man": ("kschedd.commands.shell.man", "Print manual pages."),
    "bench": ("kschedd.bench.run", "Run benchmark workloads."),
}


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    run = _run_kubectl if argv is None and Path(sys.argv[0]).name == "kubectl" else _run
    _open_closed_streams()
    _set_encoding()
    try:
        status = run(words)
        sys.stdout.flush()
        return status
    except KscheddError as error:
        from kschedd.verbs.command_line.grammar import UsageError

        _report_error(f"error: {error}")
        return WRONG_USE if isinstance(error, UsageError) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # the reader, such as `head`, has closed the pipe
        _drop(sys.stdout)
        return FAILED
    except OSError as error:
        # the error concerns a file given by the user, such as one with too long a name or in an unreadable folder
        if error.filename is not None:
            _report_error(f"error: {os.fsdecode(error.filename)}: {error.strerror}")
            return FAILED
        if error.errno not in _UNWRITABLE:
            raise
        _drop(sys.stdout)
        _report_error(f"error: standard output cannot be written: {error.strerror}")
        return FAILED


def _set_encoding() -> None:
    """Set the encoding of standard output and error.

    On a terminal, characters that its encoding lacks are printed as escapes. Files and pipes get UTF-8, the encoding of
    manifests, whatever the locale.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


def _open_closed_streams() -> None:
    """Reopen standard streams that the caller closed, on a descriptor whose use fails like that of a closed one.

    If a stream stayed closed, the next opened file would get its descriptor, and output would be written to that file.
    Standard error is opened on /dev/null instead: an error message without a reader is not a failure.
    """
    # Opened in the opposite mode, so that reads and writes fail, as in gnulib's stdopen.
    for number, name, flags in ((0, "stdin", os.O_WRONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))


def _drop(stream: IO[str]) -> None:
    """Redirect the stream to /dev/null, because flushing its buffer at exit must not fail a second time."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _report_error(text: str) -> None:
    from kschedd.printing.terminal.safe import safe

    _write_error(safe(text) + "\n")


def _write_error(text: str) -> None:
    """Write to standard error; ignore a failure to write."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)


def _run(words: list[str]) -> int:
    given, words = _global_flags(words)
    socket = given.get("--socket")
    if "--color" in given:
        _set_color(given["--color"])
    if not words or words[0] in ("-h", "--help") or words == ["help"]:
        columns = _help_columns()
        print(overview(columns) if words else first_steps(columns), end="")
        return 0 if words else WRONG_USE
    if words[0] in ("--version", "version"):
        from importlib.metadata import version

        print(f"kschedd {version('kschedd')}")
        return 0
    if words[0] == "__complete":  # the scripts printed by `completion` call this command
        from kschedd.commands.shell.completion import complete

        with ExitStack() as opened:
            return complete(" ".join(words[1:]), MOUNTED, lambda path: opened.enter_context(_client(path or socket)))
    if words[0] == "help":
        words = [*words[1:], "--help"]
    if words[0] in MOUNTED and not _is_verb(words):
        return _mounted(words, socket)
    if words[0] in _ON_DUMPS and any(word == "--from" or word.startswith("--from=") for word in words):
        return _on_dump(words, socket)
    if words[0].startswith("-"):
        _report_error(
            f"error: unknown flag {words[0]} before the command: allowed are --socket, --color, --version, --help"
        )
        return WRONG_USE
    return _verb(words, socket)


def _help_columns() -> int:
    from kschedd.printing.terminal.style import style_of
    from kschedd.verbs.command_line.overview import columns_for_help

    return columns_for_help(style_of(sys.stdout, os.environ), os.environ)


def _run_kubectl(words: list[str]) -> int:
    """Run a verb of kubectl, because kschedd was called through a link named `kubectl`."""
    from kschedd.verbs.command_line.overview import KUBECTL_VERBS, listing, paragraph
    from kschedd.verbs.table import BY_NAME, GROUPS

    given, words = _global_flags(words)
    if "--color" in given:
        _set_color(given["--color"])
    if not words or words[0] in ("-h", "--help") or words == ["help"]:
        columns = _help_columns()
        summaries = {**GROUPS, **{name: verb.summary for name, verb in BY_NAME.items()}}
        about = "This kubectl is a link to kschedd. Its verbs use kschedd's daemon instead of a kubeconfig."
        shown = listing(((name, summaries[name].partition(". ")[0]) for name in KUBECTL_VERBS), columns)
        print(f"{paragraph(about, columns)}\nusage: kubectl VERB ...\n\n{shown}", end="")
        return 0 if words else WRONG_USE
    if words[0] in ("--version", "version"):
        return _run(["version"])
    if words[0] == "help":
        words = [*words[1:], "--help"]
    if words[0] not in KUBECTL_VERBS and (words[0] in MOUNTED or words[0] in GROUPS or words[0] in BY_NAME):
        raise _usage(f"{words[0]} is not a verb of kubectl; use `kschedd {words[0]}`")
    return _verb(words, given.get("--socket"), "kubectl ")


def _is_verb(words: Sequence[str]) -> bool:
    """Return whether these words mean a verb, although their first word is also a command with its own module.

    `run --image` is kubectl's verb `run`, because the daemon's command has no flag `--image`. `plugin list` and others
    need a daemon.
    """
    flags = words[: words.index("--")] if "--" in words else words
    if words[0] == "plugin":
        from kschedd.verbs.table import BY_WHOLE

        return " ".join(words[:2]) in BY_WHOLE
    return words[0] == "run" and any(word == "--image" or word.startswith("--image=") for word in flags)


#: verbs that run on a dump with --from
_ON_DUMPS: Final = frozenset(("explain", "plan"))
_GLOBAL_FLAGS: Final[Mapping[str, str]] = {"--socket": "a path", "--color": "auto, always or never"}


def _global_flags(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the values of the flags that every command accepts in any position, and the remaining words."""
    found: dict[str, str] = {}
    rest = []
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        if word == "--":
            rest += [word, *left]
        elif name in _GLOBAL_FLAGS:
            found[name] = value if equals else next(left, "")
            if not found[name]:
                raise _usage(f"{name} requires {_GLOBAL_FLAGS[name]}")
        else:
            rest.append(word)
    return found, rest


def _set_color(when: str) -> None:
    """Set the environment variables that control color. Raises UsageError."""
    if when not in ("auto", "always", "never"):
        raise _usage(f'--color "{when}": allowed are auto, always and never')
    os.environ.update({"never": {"NO_COLOR": "1"}, "always": {"NO_COLOR": "", "FORCE_COLOR": "1"}, "auto": {}}[when])


def _usage(why: str) -> Exception:
    from kschedd.verbs.command_line.grammar import UsageError

    return UsageError(why)


class _Parser(NotingParser):
    """Parser of a command that has its own module. Flags must not be abbreviated, as in verbs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Report unknown flags with the parser of the subcommand, which defines the other flags."""
        self.given = list(args or ())
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return options, unknown

    def error(self, message: str) -> Never:
        from kschedd.verbs.command_line.usage_messages import clearer

        known = [name for flag in self.noted for name in flag.names]
        why = clearer(message, known, self.renamed, self.given, self.prog.partition(" ")[2])
        self.exit(WRONG_USE, f"error: {why}\nSee {self.prog} --help\n")


def _mounted(words: list[str], socket: str | None) -> int:
    """Run a command that has its own module. --socket is passed on to the commands that accept it."""
    from kschedd.garbage_collection import collection_postponed

    with collection_postponed():  # no imported object is garbage; collections would take a tenth of the run time
        module = importlib.import_module(MOUNTED[words[0]][0])
    parser = _Parser(prog="kschedd")
    subparsers = parser.add_subparsers(required=True, parser_class=_Parser)
    module.add_parser(subparsers)
    try:
        options = parser.parse_args(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else WRONG_USE
    if socket is not None and not hasattr(options, "socket"):
        _report_error(f"error: --socket does not apply to {words[0]}, which uses no daemon")
        return WRONG_USE
    if hasattr(options, "socket"):
        options.socket = socket
    options.command_line = words
    run: Callable[[argparse.Namespace], int | None] = options.run
    return run(options) or 0


def _verb(words: list[str], socket: str | None, program: str = "kschedd ") -> int:
    from kschedd.verbs.table import BY_NAME, run_words, short_words, without_program

    opened: list[Any] = []
    session = make_session(socket, opened, program)
    try:
        return run_words(session, words, tuple(MOUNTED))
    except KscheddError as lost:  # the daemon
        _report_error(f"error: {lost}")
        return BY_NAME[short_words(without_program(words))[0]].failed
    finally:
        for client in opened:
            client.close()


def _on_dump(words: list[str], socket: str | None) -> int:
    """Run a verb with `--from DUMP`, which needs no daemon."""
    from kschedd.commands.offline.verb_on_dump import run_on_dump

    if socket is not None:
        _report_error(f"error: --socket does not apply to {words[0]} --from, which uses no daemon")
        return WRONG_USE
    return run_on_dump(words, _session_on)


def _session_on(client: Any, now_s: float) -> Any:
    """Return a session for this terminal with that client; its time is that of the client's cluster."""
    import attrs

    session = make_session(None, [])
    return attrs.evolve(
        session, connect=lambda: client, now=lambda: now_s, cluster_time=None, streams=False, remedies_for="kubectl"
    )


def make_session(socket: str | None, opened: list[Any], program: str = "kschedd ") -> Any:
    """Return a session for this terminal; its blocking client connects on first use and is then added to `opened`.

    `program` is the prefix of verbs in help and hints.
    """
    from kschedd.printing.terminal.style import style_of
    from kschedd.verbs.command_line.session import DaemonClient, VerbSession
    from kschedd.verbs.objects.editor import open_editor

    def connect() -> DaemonClient:
        from kschedd.printing.terminal.pipes import pipe_of
        from kschedd.rpc.blocking import BlockingClient

        opened.append(BlockingClient(socket, output=pipe_of(sys.stdout)))
        client: DaemonClient = opened[-1]
        return client

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def write_error(text: str) -> None:
        sys.stdout.flush()
        _write_error(text)

    return VerbSession(
        connect,
        write,
        write_error,
        style_of(sys.stdout, os.environ),
        read_input=lambda: sys.stdin.buffer.read(),
        measure=lambda: style_of(sys.stdout, os.environ),
        cluster_time=lambda: float(opened[-1].call("time.get")["now_s"]) if opened else time.time(),
        outlived=True,
        program=program,
        whole_names=True,
        offline=_of_file,
        open_editor=open_editor,
    )


def _of_file(method: str, named: Mapping[str, Any]) -> Any:
    """Return the result of a method that only reads files, without a daemon."""
    if method == "capacity.compare":
        from kschedd.commands.offline.compare import answer

        return answer(named)
    import attrs

    from kschedd.answers import plain
    from kschedd.config.changing import files
    from kschedd.config.in_tree import IN_TREE
    from kschedd.framework.registry import Registry

    registry = Registry()
    registry.add_entry_points()
    for path in named.get("plugins") or ():
        registry.add_file(Path(path))
    given = named["text"], named["source"], IN_TREE | registry.catalogue()
    if method == "config.check":
        upgraded = bool(named.get("upgrade_to"))
        checked = files.check(*given, version=files.version_named(named.get("kube_version", ""), upgraded=upgraded))
        if named.get("upgrade_to"):
            from kschedd.lint.upgrades import upgrade_warnings

            more = upgrade_warnings(*given[:2], named["upgrade_to"], named.get("kube_version", ""))
            checked = attrs.evolve(checked, warnings=[*checked.warnings, *more])
        return plain(checked)
    if method == "config.convert":
        return {"text": files.convert(*given, upstream=bool(named.get("upstream")))}
    return plain(files.show(*given, version=files.version_named(named.get("kube_version", ""))))


def _client(socket: str | None) -> Any:
    from kschedd.commands.shell.shell_names import TIMEOUT_S
    from kschedd.rpc.blocking import BlockingClient

    return BlockingClient(socket, timeout=TIMEOUT_S)


def _summaries() -> dict[str, str]:
    """Return the summary of each command, by the first word of the command."""
    from kschedd.verbs.table import GROUPS, VERBS

    verbs = {verb.name: verb.summary for verb in VERBS if not verb.whole}
    return {**GROUPS, **verbs, **{name: what for name, (_, what) in MOUNTED.items()}}


_USAGE: Final = "usage: kschedd [--socket PATH] [--color auto|always|never] COMMAND ...\n"


def overview(columns: int = 0) -> str:
    """Return the text of `kschedd --help` for a terminal with so many columns (0: no terminal)."""
    from kschedd.verbs.command_line.overview import by_topic, paragraph

    more = (
        "`kschedd COMMAND --help` describes a command. The daemon's socket is --socket PATH, else $KSCHEDD_SOCKET, "
        "else one in your runtime directory. Exit status: 0 success or yes, 1 failure or no, 2 wrong usage or unusable "
        "input."
    )
    return (
        paragraph("kschedd: kube-scheduler as one local process that you can query, stop and change.", columns)
        + f"\n{_USAGE}\n"
        + by_topic(_summaries(), columns)
        + paragraph(more, columns or 100)
    )


def first_steps(columns: int = 0) -> str:
    """Return the text of `kschedd` without a command."""
    from kschedd.verbs.command_line.overview import FIRST, brief, listing

    summaries = _summaries()
    shown = listing(((name, brief(summaries[name])) for name in FIRST), columns)
    return f"{_USAGE}\nfirst steps:\n{shown}\n`kschedd --help` lists all commands.\n"


if __name__ == "__main__":
    sys.exit(main())
