"""Growth of a daemon: `python -m tests.bench.growth EARLIER.json LATER.json` compares two censuses of a soak.

`python -m tests.bench.growth --daemon DIR run ...` runs a daemon (`python -m kschedd run ...`) that writes a census of
its memory into DIR/1.json, DIR/2.json, ... at each SIGUSR1: objects by type, the largest containers by what refers to
them, and the bytes of arrays.
"""

import argparse
import gc
import json
import signal
import sys
import traceback
from collections import Counter, deque
from collections.abc import Sized
from pathlib import Path
from typing import Any

import numpy as np

_CONTAINERS = (dict, list, set, deque)
_SMALLEST = 500


def census() -> dict[str, Any]:
    gc.collect()
    gc.freeze()  # excludes the lists that are created here
    gc.unfreeze()
    objects = gc.get_objects()
    types = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in objects)
    large = {id(each): each for each in objects if isinstance(each, _CONTAINERS) and len(each) >= _SMALLEST}
    large.pop(id(objects), None)
    names: dict[int, set[str]] = {each: set() for each in large}
    for owner in objects:
        if owner is large or owner is names:
            continue
        for referred in gc.get_referents(owner):
            if id(referred) in names:
                names[id(referred)].add(_named(owner, referred))
    containers: Counter[str] = Counter()
    for number, each in large.items():
        containers[f"{type(each).__name__} of {'; '.join(sorted(names[number])) or 'a frame'}"] += len(each)
    arrays: Counter[str] = Counter()
    for owner in objects:
        for each in gc.get_referents(owner):
            if type(each) is np.ndarray and each.base is None:  # the collector does not track arrays of numbers
                arrays[f"{each.dtype} of {_named(owner, each)}"] += each.nbytes
    return {"types": types, "containers": containers, "arrays": arrays, "blocks": {"": sys.getallocatedblocks()}}


def _named(owner: Any, referred: Any) -> str:
    kind = f"{type(owner).__module__}.{type(owner).__qualname__}"
    if isinstance(owner, dict):
        keys = [str(key)[:40] for key, value in list(owner.items()) if value is referred]
        return f"dict[{keys[0] if keys else '?'}]"
    for slot in getattr(type(owner), "__slots__", ()):
        if getattr(owner, slot, None) is referred:
            return f"{kind}.{slot}"
    return kind if not isinstance(owner, Sized) else f"{kind} ({len(owner)})"


def compare(earlier: dict[str, Any], later: dict[str, Any]) -> None:
    for part, counts in later.items():
        print(f"--- {part}")
        before = earlier[part]
        grown = sorted(((count - before.get(name, 0), name) for name, count in counts.items()), reverse=True)
        for more, name in grown[:40]:
            if more > 0:
                print(f"{more:+10,}  {before.get(name, 0):>10,}  {name}")


def daemon(folder: Path, words: list[str]) -> int:
    from kschedd import cli

    folder.mkdir(parents=True, exist_ok=True)
    taken = 0

    def take(number: int, frame: Any) -> None:
        nonlocal taken
        taken += 1
        try:
            (folder / f"{taken}.json").write_text(json.dumps(census()))
        except Exception:
            traceback.print_exc()  # the daemon goes on

    signal.signal(signal.SIGUSR1, take)
    sys.argv[1:] = words
    return cli.main()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--daemon"]:
        sys.exit(daemon(Path(sys.argv[2]), sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", type=Path)
    parser.add_argument("later", type=Path)
    given = parser.parse_args()
    compare(json.loads(given.earlier.read_text()), json.loads(given.later.read_text()))
