"""`kschedd replay`: a recorded run again, exactly.

Exit status: 0 it came out as it was recorded; 1 it did not; 2 some input could not be used.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

from kschedd.verbs.parsing import path_value

DIVERGED: Final = 1
BAD_INPUT: Final = 2


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "replay",
        help="replay a recorded run",
        description="Replay what `kschedd run --record FILE` recorded: the same decisions, byte for byte, at once, "
        "in virtual time and without plugins or extenders, whose answers are in the recording. Exit status: 0 the "
        "same, 1 something differs, 2 some input could not be used.",
    )
    parser.add_argument("file", type=path_value, metavar="FILE", help="the recording")
    where = parser.add_argument_group("how far")
    where.add_argument(
        "--until",
        metavar="N|TIME",
        help="stop after so many attempts, or at a time: 90s and 1m30s count from the start",
    )
    where.add_argument("--to", metavar="POD[#ATTEMPT]", help="stop right before an attempt of this pod (the first)")
    out = parser.add_argument_group("what comes out")
    out.add_argument("-o", "--output", choices=("table", "json"), default="table")
    out.add_argument("--decisions", type=path_value, metavar="FILE", help="write one line of JSON for each attempt")
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    from kschedd.errors import KscheddError
    from kschedd.printing.safe import safe

    try:
        return _replay(options)
    except KscheddError as fault:
        print(safe(f"error: {fault}"), file=sys.stderr)
        return BAD_INPUT


def _replay(options: argparse.Namespace) -> int:
    from kschedd.printing.safe import exact, safe
    from kschedd.recording.reading import RecordingFile
    from kschedd.simulate.decisions import DecisionLog
    from kschedd.simulate.replay.player import Player, ReplayDiverged
    from kschedd.simulate.replay.run import Replay, StopAt

    diverged = ""
    with RecordingFile.open(options.file) as recording, DecisionLog(options.decisions) as log:
        stop = StopAt.parse(options.until, options.to, recording.header.start_s)
        player = Player(recording)
        began = time.perf_counter()
        replay = Replay(player, log.write)
        try:
            replay.run(stop)
        except ReplayDiverged as fault:
            diverged = str(fault)
        told = _told(options.file, replay, diverged, time.perf_counter() - began)
    print(exact(json.dumps(told, ensure_ascii=False, indent=2)) if options.output == "json" else safe(_text(told)))
    for what in player.by_hand:
        text = f"warning: an attempt was changed by hand when it was recorded ({what}), which a replay cannot do again"
        print(safe(text), file=sys.stderr)
    return DIVERGED if diverged else 0


def _told(file: Path, replay: Any, diverged: str, wall_s: float) -> dict[str, Any]:
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


def _text(told: dict[str, Any]) -> str:
    from kschedd.store.times import stamp

    end = stamp(told["start_s"] + told["elapsed_s"])
    lines = [
        f"recorded   by kschedd {told['kschedd'] or '(unknown)'}, Kubernetes {told['kube_version']}, "
        f"seed {told['seed']}, from {stamp(told['start_s'])}",
        f"replayed   {told['attempts']:,} attempts, {told['placed']:,} placed, {told['failed']:,} failed, "
        f"up to {end} ({told['elapsed_s']:.3f} s of the run, in {told['wall_s']:.2f} s)",
    ]
    if told["broken"]:
        lines.append(f"broken off {told['broken']}; what is whole was replayed")
    lines.append(f"differs    {told['diverged']}" if told["diverged"] else "same       as recorded, attempt by attempt")
    return "\n".join(lines)
