"""`kschedd replay`: exactly replays a recorded run.

Exit status: 0 if the decisions are equal, 1 if they differ, 2 if an input is unusable.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, Final

from kschedd.commands.flags.daemon import DEFAULT_HTTP
from kschedd.commands.flags.scheduler import kube_version_value
from kschedd.commands.notices import report_error, warn
from kschedd.errors import KscheddError
from kschedd.verbs.command_line.parsing import path_value


class ReplayUsageError(KscheddError):
    """The error for flags that exclude each other, or that are unusable."""


DIVERGED: Final = 1
BAD_INPUT: Final = 2


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "replay",
        help="replay a recorded run",
        description="Replay a recording of `kschedd run --record FILE` in virtual time: the same decisions, byte for"
        " byte. Out-of-tree plugins and extenders are not called; their answers are in the recording. "
        "Exit status: 0 if the decisions are equal, 1 if they differ, 2 if an input is unusable.",
    )
    parser.add_argument("recording", type=path_value, metavar="FILE", help="a file written by `run --record`")
    where = parser.add_argument_group("how far")
    where.add_argument(
        "--until",
        metavar="N|TIME",
        help="stop after N attempts, or at a time: 90s and 1m30s count from the start",
    )
    where.add_argument("--to", metavar="POD[#ATTEMPT]", help="stop before the first attempt of this pod")
    other = parser.add_argument_group("under another configuration")
    other.add_argument(
        "--config",
        type=path_value,
        metavar="FILE",
        help="replay the inputs at their times with this KubeSchedulerConfiguration, and compare the placements",
    )
    other.add_argument(
        "--kube-version", type=kube_version_value, metavar="VERSION", help="compare with another version of Kubernetes"
    )
    other.add_argument(
        "--feature-gates",
        action="append",
        default=[],
        metavar="GATE=BOOL,...",
        help="compare with feature gates turned on or off",
    )
    other.add_argument(
        "--plugin",
        type=path_value,
        action="append",
        default=[],
        metavar="FILE.py",
        help="a Python file with plugins",
    )
    other.add_argument("--limit", type=int, default=20, metavar="N", help="print at most N pods (default 20)")
    live = parser.add_argument_group("at the prompt")
    live.add_argument(
        "--attach",
        action="store_true",
        help="open the prompt on the replay, stopped at that moment (default: the start). The prompt offers all "
        "commands that only read, and `debug step`, `debug until` and `fork create`",
    )
    live.add_argument("--serve", action="store_true", help="serve the replay on --socket, until Ctrl-C")
    live.add_argument("--socket", metavar="PATH", help="socket of --serve")
    live.add_argument(
        "--web",
        nargs="?",
        const=DEFAULT_HTTP,
        metavar="ADDRESS:PORT",
        help=f"also serve the page in the browser (requires --serve; default {DEFAULT_HTTP})",
    )
    live.add_argument(
        "-c", "--command", action="append", default=[], metavar="TEXT", help="run this command (requires --attach)"
    )
    live.add_argument(
        "--script",
        action="append",
        default=[],
        metavar="FILE",
        help="run the commands in FILE (requires --attach)",
    )
    out = parser.add_argument_group("what comes out")
    out.add_argument("-o", "--output", choices=("table", "json"), default="table")
    out.add_argument(
        "--redact-to",
        type=path_value,
        metavar="FILE",
        help="write a copy of the recording with replaced names, and replay that",
    )
    out.add_argument(
        "--decisions", type=path_value, metavar="FILE", help="write the decision log: a line of JSON for each attempt"
    )
    parser.renamed |= {"-f": "--script", "--file": "--script", "--redact": "--redact-to"}
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:

    try:
        if options.config is not None or options.kube_version is not None or options.feature_gates:
            return _under_another(options)
        return _served(options) if options.attach or options.serve or options.web else _replay(options)
    except KscheddError as fault:
        report_error(str(fault))
        return BAD_INPUT


def _under_another(options: argparse.Namespace) -> int:
    from kschedd.actors.scheduler.plugin_calls import run_async
    from kschedd.framework.registry import Registry
    from kschedd.printing.reports.comparison import as_text
    from kschedd.printing.terminal.safe import exact, safe
    from kschedd.simulation.replay.other import compare_with

    if any((options.until, options.to, options.attach, options.serve, options.decisions, options.redact_to)):
        raise ReplayUsageError(
            "--config, --kube-version and --feature-gates exclude --until, --to and --attach: they compare whole runs"
        )
    registry = Registry(run_async=run_async)
    registry.add_entry_points()
    for plugin in options.plugin:
        registry.add_file(plugin)
    try:
        text = None if options.config is None else options.config.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        why = getattr(fault, "strerror", None) or fault
        raise ReplayUsageError(f"{options.config}: cannot be read: {why}") from fault
    found = compare_with(
        options.recording, registry, text, str(options.config), options.kube_version, options.feature_gates
    )
    if options.output == "json":
        print(exact(json.dumps(found, ensure_ascii=False, indent=2)))
    else:
        print(safe(as_text(found, options.limit)), end="")
        print(
            f"of {found['recorded']} pods that have the same name there, the recorded configuration places "
            f"{found['as_recorded']} in virtual time as the recorded run did"
        )
    for what in found["refused"][: options.limit]:
        warn(f"could not be done again: {what}")
    if found["broken"]:
        warn(f"the recording is cut short: {found['broken']}")
    return DIVERGED if found["different"] else 0


def _served(options: argparse.Namespace) -> int:
    from kschedd.commands.offline import replay_attach
    from kschedd.startup.options import version

    if options.web is not None and not options.serve:
        raise ReplayUsageError("--web requires --serve")
    given = replay_attach.AttachOptions(
        options.recording, options.until, options.to, options.socket, version(), options.web
    )
    if options.serve:
        return replay_attach.serve(given)
    return replay_attach.attach(given, options.command, options.script)


def _replay(options: argparse.Namespace) -> int:
    from kschedd.printing.terminal.safe import exact, safe
    from kschedd.recording.reading import RecordingFile
    from kschedd.simulation.replay.player import Player, ReplayDiverged
    from kschedd.simulation.replay.run import Replay, StopAt
    from kschedd.simulation.results.decisions import DecisionLog

    if options.redact_to is not None:
        from kschedd.recording.redaction import redact

        redact(options.recording, options.redact_to)
        options.recording = options.redact_to
    diverged = ""
    with RecordingFile.open(options.recording) as recording, DecisionLog(options.decisions) as log:
        stop = StopAt.parse(options.until, options.to, recording.header.start_s)
        player = Player(recording)
        began = time.perf_counter()
        replay = Replay(player, log.write)
        try:
            replay.run(stop)
        except ReplayDiverged as fault:
            diverged = str(fault)
        summary = _summary(options.recording, replay, diverged, time.perf_counter() - began)
    print(
        exact(json.dumps(summary, ensure_ascii=False, indent=2)) if options.output == "json" else safe(_text(summary))
    )
    return DIVERGED if diverged else 0


def _summary(file: Path, replay: Any, diverged: str, wall_s: float) -> dict[str, Any]:
    player = replay.player
    header = player.recording.header
    return {
        "recording": str(file),
        "kschedd": header.kschedd,
        "kube_version": header.kube_version,
        "seed": header.seed,
        "start_s": header.start_s,
        "elapsed_s": player.now_s - header.start_s,
        "attempts": replay.placed + replay.failed,
        "placed": replay.placed,
        "failed": replay.failed,
        "notes": player.at,
        "ended": player.ended,
        "broken": player.recording.broken,
        "diverged": diverged,
        "wall_s": wall_s,
    }


def _text(summary: dict[str, Any]) -> str:
    from kschedd.api.text.times import stamp

    end = stamp(summary["start_s"] + summary["elapsed_s"])
    lines = [
        f"recorded   by kschedd {summary['kschedd'] or '(unknown)'}, Kubernetes {summary['kube_version']}, "
        f"seed {summary['seed']}, from {stamp(summary['start_s'])}",
        f"replayed   {summary['attempts']:,} attempts, {summary['placed']:,} placed, {summary['failed']:,} failed, "
        f"up to {end} ({summary['elapsed_s']:.3f} s of the run, in {summary['wall_s']:.2f} s)",
    ]
    if summary["broken"]:
        lines.append(f"broken off {summary['broken']}; what is whole was replayed")
    lines.append(
        f"differs    {summary['diverged']}" if summary["diverged"] else "same       as recorded, attempt by attempt"
    )
    return "\n".join(lines)
