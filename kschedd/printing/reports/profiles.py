"""Output of the daemon's profiles: tables, collapsed stacks (flamegraph.pl), speedscope's JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.printing.terminal.tables import Table

Raw = Mapping[str, Any]

_IDLE: Final = "(idle)"
_MAIN: Final = "MainThread"
_SHOWN: Final = 25


def profile_tables(profile: Raw) -> list[Table]:
    """Return two tables, one by task or thread and one by function, with the share of all samples."""
    looks = max(1, profile["looks"])
    owners: Counter[str] = Counter()
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for stack in profile["stacks"]:
        frames, count = stack["frames"], stack["count"]
        owners[_owner_of(stack)] += count
        if not frames or frames[-1] == _IDLE:
            continue
        own[frames[-1]] += count
        for frame in set(frames):
            total[frame] += count
    # Equal counts are sorted by name, so that equal profiles are printed in the same order.
    by_owner = sorted(owners.items(), key=lambda each: (-each[1], each[0]))[:_SHOWN]
    functions = sorted(total, key=lambda name: (-own[name], -total[name], name))[:_SHOWN]
    return [
        Table(("SHARE", "TASK OR THREAD"), tuple((_share(count, looks), name) for name, count in by_owner)),
        Table(
            ("SELF", "TOTAL", "FUNCTION"),
            tuple((_share(own[name], looks), _share(total[name], looks), name) for name in functions),
        ),
    ]


def _owner_of(stack: Raw) -> str:
    """Return the task if the thread runs the event loop, otherwise the name of the thread."""
    frames = stack["frames"]
    if frames[:1] == [_IDLE]:
        return f"{stack['thread']} {_IDLE}"
    return str(frames[0]) if stack["thread"] == _MAIN and frames else str(stack["thread"])


def _share(count: int, looks: int) -> str:
    return f"{100 * count / looks:.1f}%"


def collapsed(profile: Raw) -> str:
    """Return a line for each stack, with its frames joined by semicolons and its number of samples."""
    lines = [";".join((stack["thread"], *stack["frames"])) + f" {stack['count']}\n" for stack in profile["stacks"]]
    return "".join(lines)


def speedscope(profile: Raw) -> str:
    """Return one sampled profile per thread, as in https://www.speedscope.app/file-format-schema.json."""
    names: dict[str, int] = {}
    by_thread: dict[str, list[Raw]] = {}
    for stack in profile["stacks"]:
        by_thread.setdefault(stack["thread"], []).append(stack)
    step = profile["seconds"] / max(1, profile["looks"])
    profiles = [_of_thread(thread, stacks, names, step) for thread, stacks in sorted(by_thread.items())]
    return json.dumps(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "name": "kschedd",
            "exporter": "kschedd profile",
            "shared": {"frames": [{"name": name} for name in names]},
            "profiles": profiles,
        }
    )


def _of_thread(thread: str, stacks: Sequence[Raw], names: dict[str, int], step: float) -> dict[str, Any]:
    samples = [[names.setdefault(frame, len(names)) for frame in stack["frames"]] for stack in stacks]
    weights = [stack["count"] * step for stack in stacks]
    return {
        "type": "sampled",
        "name": thread,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
