"""The commands of a scenario file: the verbs of the command line, and commands for setup and virtual time.

These commands are optional, and must precede all other commands:

    kube-version 1.36 | seed N | config (a KubeSchedulerConfiguration follows, or -f FILE) | plugin FILE.py
    controllers --node-eviction-rate 1 ...         the controllers' flags of `kschedd run`

Time (after every command, all work that is due at the current virtual time is done):

    advance 10s | rest [1h]                        rest: until the cluster is idle

    A verb that waits (drain) advances the time as well.

Any other command is a verb, as on the command line; `help VERB` shows its arguments. The lines after a command are its
standard input; `-f -` (for patch: `--patch-file -`) is then added automatically. Lines that the command does not read
are an error, because they were probably meant as the next step. Relative file names are relative to the scenario's
directory. A verb's error messages are part of its output.
"""

import math
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.actors.scheduler.plugin_calls import run_async
from kschedd.api.text.durations import DurationError, parse_span
from kschedd.api.text.numbers import whole_number
from kschedd.api.text.similar import did_you_mean
from kschedd.api.text.times import LAST_S, stamp
from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import default_config, load_config
from kschedd.config.model import Config
from kschedd.config.versions.feature_gates import parse_flag
from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion, kube_version
from kschedd.controllers.options import OPTIONS, controller_options, read_option
from kschedd.errors import KscheddError
from kschedd.framework.registry import Registry
from kschedd.methods import daemon_methods
from kschedd.simulation.engine import LoggedAttempt
from kschedd.simulation.summary import span
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.scheduler.expectations import Finding
from kschedd.verbs.scheduler.expecting import check
from kschedd.verbs.table import WRONG_USE, find_verb, run_words, short_words, without_program

#: the flag with which each verb reads standard input
_READING: Final = {**dict.fromkeys(("apply", "create", "delete", "explain"), "-f"), "patch": "--patch-file"}
_LONGEST_WAIT_S: Final = 3_600.0  # limit in seconds for a verb that waits, such as drain
#: verbs that have no meaning in a scenario
_NOT_HERE: Final = {"stop": "there is no daemon to stop", "watch": "nothing changes while a command runs"}


@attrs.define(eq=False)
class CommandError(KscheddError):
    """A command cannot be parsed."""

    why: str


def duration(text: str) -> float:
    """Return the seconds in a duration such as `90s`, `1m30s` or `500ms`. Raises CommandError."""
    try:
        seconds = parse_span(text)
    except DurationError:
        seconds = -1.0
    if seconds < 0:
        raise CommandError(f"{text!r} is not a duration, such as 500ms, 10s, 1m30s, 2h or 1d")
    return seconds


def with_input(words: list[str], given: str) -> list[str]:
    """Return the words of a command; the flag that reads standard input is added if the verb has such a flag."""
    flag = _READING.get(words[0])
    return [*words, flag, "-"] if given.strip() and flag is not None and flag not in words else words


@attrs.frozen
class CommandResult:
    """The result of a command.

    `status` is the exit status on the command line: 0 for success, 1 for failure, 2 for a command that could not be
    parsed. `unread`: the command did not read its input.
    """

    text: str
    status: int
    unread: bool = False


class ScenarioCluster:
    """The cluster of a scenario. `folder`: the base of relative file names; `cluster`: an existing cluster to use.

    `only`: use `version` and its feature gates, even if the scenario sets others.
    """

    def __init__(
        self,
        folder: Path,
        on_decision: Callable[[LoggedAttempt], None] | None = None,
        cluster: VirtualCluster | None = None,
        version: KubernetesVersion = DEFAULT,
        *,
        only: bool = False,
    ) -> None:
        self._folder = folder
        self._on_decision = on_decision
        self._seed = 1
        self._config = ""
        self._version = version
        self._only = only
        self._gates: dict[str, bool] = {}
        self._options: dict[str, Any] = {}
        self._registry = Registry(run_async=run_async)
        self._cluster = cluster
        self._daemon = None if cluster is None else VirtualDaemon(cluster, daemon_methods)

    @property
    def cluster(self) -> VirtualCluster:
        """The cluster, created by the first command that needs it."""
        if self._cluster is None:
            self._cluster = VirtualCluster(
                self._read_config(),
                seed=self._seed,
                registry=self._registry,
                options=controller_options(self._options),
                on_decision=self._on_decision,
                served=True,
            )
            self._daemon = VirtualDaemon(self._cluster, daemon_methods)
        return self._cluster

    def connect(self) -> VirtualDaemon:
        """Return the client that verbs call."""
        daemon = self._daemon if self.cluster is not None else None
        assert daemon is not None, "made with the cluster"
        return daemon

    def do(self, command: str, given: str) -> str:
        """Run one command with the lines that follow it as input; return its output, including error messages."""
        return self.execute(command, given).text

    def execute(self, command: str, given: str) -> CommandResult:
        """Run a command like `do`, and return its output with the exit status."""
        try:
            words = list(without_program(shlex.split(command)))
            own = OWN.get(words[0]) if words == short_words(words) else None
            reads = words == ["config"]  # the input is a configuration
            if words[0] == "config" and words[1:2] != ["-f"] and not (reads and given.strip()):
                own = None  # without input, `config` is the verb that shows the present configuration
            if own is not None:
                unread = bool(given.strip()) and not reads
                return CommandResult("" if unread else own(self, words[1:], given), 0, unread)
            if words[0] in _NOT_HERE:
                raise CommandError(f"{words[0]}: {_NOT_HERE[words[0]]}")
        except (KscheddError, ValueError, OSError) as fault:
            return CommandResult(f"error: {fault}\n", WRONG_USE)
        return self._verb(words, given)

    def expect(self, command: str) -> Finding:
        """Return the result of an `expect` line. Raises KscheddError if the line cannot be parsed or evaluated."""
        try:
            words = shlex.split(command)
        except ValueError as fault:
            raise CommandError(str(fault)) from fault
        verb = find_verb("expect")
        return check(self._session([]), verb.parser("kschedd ").read(words[1:]))

    def _verb(self, words: list[str], given: str) -> CommandResult:
        words = with_input(words, given)
        printed: list[str] = []
        was_read = False

        def read_input() -> bytes:
            nonlocal was_read
            was_read = True
            return given.encode()

        limit = math.inf if words[0] == "expect" else _LONGEST_WAIT_S  # `expect` has a time limit of its own
        status = run_words(self._session(printed, read_input, limit), words, tuple(OWN))
        unread = bool(given.strip()) and not was_read and status != WRONG_USE
        return CommandResult("".join(printed), status, unread)

    def _session(
        self, printed: list[str], read_input: Callable[[], bytes] = bytes, limit_s: float = math.inf
    ) -> VerbSession:
        return VerbSession(
            self.connect,
            printed.append,
            printed.append,
            now=lambda: self.cluster.engine.now,
            sleep=self._sleeper(limit_s),
            read_input=read_input,
            streams=False,
            program="kschedd ",
            folder=self._folder,
        )

    def _sleeper(self, limit_s: float) -> Callable[[float], None]:
        """Return the sleep function of one verb, which advances virtual time up to a limit."""
        slept = 0.0

        def sleep(seconds: float) -> None:
            nonlocal slept
            slept += seconds
            if slept > limit_s:
                raise CommandError(f"it has waited for {span(limit_s)} of virtual time: longer than a scenario waits")
            engine = self.cluster.engine
            engine.advance(engine.now + seconds)

        return sleep

    # -- set-up -------------------------------------------------------------------------------------------------

    def seed(self, words: list[str], given: str) -> str:
        self._not_begun()
        number = _exactly(words, "seed N")
        seed = whole_number(number.removeprefix("-"))
        if seed is None:
            raise CommandError(f"seed N: {number[:100]!r} is no whole number")
        self._seed = -seed if number.startswith("-") else seed
        return ""

    def config(self, words: list[str], given: str) -> str:
        self._not_begun()
        if words[:1] == ["-f"]:
            file = _exactly(words[1:], "config -f FILE")
            given = (self._folder / file).read_text(encoding="utf-8")
        before, self._config = self._config, given
        try:
            self._read_config()
        except KscheddError:
            self._config = before
            raise
        return ""

    def _read_config(self) -> Config:
        catalogue = IN_TREE | self._registry.catalogue()
        if not self._config:
            return default_config(catalogue=catalogue, version=self._version, feature_gates=self._gates)
        return load_config(
            self._config, "config", catalogue=catalogue, version=self._version, feature_gates=self._gates
        )

    def kube_version(self, words: list[str], given: str) -> str:
        self._not_begun()
        named = kube_version(_exactly(words, "kube-version 1.34"))
        self._version = self._version if self._only else named
        return ""

    def feature_gates(self, words: list[str], given: str) -> str:
        self._not_begun()
        text = _exactly(words, "feature-gates NAME=true,...")
        if not self._only:  # with `only`, the feature gates of the version apply
            self._gates |= parse_flag([text], self._version.gates)
        return ""

    def plugin(self, words: list[str], given: str) -> str:
        self._not_begun()
        file = _exactly(words, "plugin FILE.py")
        return f"plugins {', '.join(self._registry.add_file(self._folder / file))}\n"

    def controllers(self, words: list[str], given: str) -> str:
        self._not_begun()
        usage = "controllers --node-eviction-rate 1 ..."
        flat = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
        if not flat or len(flat) % 2:
            raise CommandError(f"expected: {usage}")
        for flag, text in zip(flat[::2], flat[1::2], strict=True):
            name = flag.removeprefix("--")
            if name == flag or name not in OPTIONS:
                raise CommandError(
                    f'controllers: no flag "{flag}"{did_you_mean(flag, [f"--{known}" for known in OPTIONS])}'
                )
            if OPTIONS[name].is_file:
                text = ",".join(str(self._folder / path) for path in text.split(","))
            self._options[name] = read_option(name, text)
        return ""

    def _not_begun(self) -> None:
        if self._cluster is not None:
            raise CommandError("this command must precede the first command that needs a cluster")

    # -- time ---------------------------------------------------------------------------------------------------

    def advance(self, words: list[str], given: str) -> str:
        how_long = _exactly(words, "advance 10s")
        engine = self.cluster.engine
        if (end := engine.now + duration(how_long)) > LAST_S:
            raise CommandError(f"advance {how_long}: cannot advance beyond {stamp(LAST_S)}")
        engine.advance(end)
        return ""

    def rest(self, words: list[str], given: str) -> str:
        limit = duration(words[0]) if words else 3600.0
        engine = self.cluster.engine
        at_rest = engine.run_to_rest(limit)
        return f"+{span(engine.elapsed)} {'at rest' if at_rest else 'still busy'}\n"


def _exactly(words: list[str], usage: str) -> str:
    if len(words) != 1:
        raise CommandError(f"expected: {usage}")
    return words[0]


OWN: Final[Mapping[str, Callable[[ScenarioCluster, list[str], str], str]]] = {
    "kube-version": ScenarioCluster.kube_version,
    "feature-gates": ScenarioCluster.feature_gates,
    "seed": ScenarioCluster.seed,
    "config": ScenarioCluster.config,
    "plugin": ScenarioCluster.plugin,
    "controllers": ScenarioCluster.controllers,
    "advance": ScenarioCluster.advance,
    "rest": ScenarioCluster.rest,
}
