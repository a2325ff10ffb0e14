"""The score of `explain` on the corpus: for each half, the numbers of named causes, solved mistakes and harm done.

`python -m tests.mistakes.score [FOLDER]` prints a table, and each file with a wrong answer. `first-half.txt` in the
folder names the files that were written from public reports before `explain` named causes; the other files are the
second half.
"""

import sys
from pathlib import Path

import attrs

from tests.mistakes.asking import answer, step
from tests.mistakes.harms import harms
from tests.mistakes.mistake_files import FOLDER, WAIT, Mistake, MistakeFileError, Step, load, run
from tests.mistakes.standing import displaced, standing


@attrs.frozen
class Score:
    """`solved`: the first remedy solves the mistake, or none is expected and none is given.

    `harm`: the harm done by the first remedy.
    """

    named: bool
    solved: bool
    harm: tuple[str, ...] = ()


def scored(mistake: Mistake) -> Score:
    """Ask about the mistake, and run the first remedy."""
    expect, cluster = mistake.expect, mistake.build()
    before = standing(cluster, expect.ask, expect.namespace)
    found = answer(mistake, cluster)
    named = found["cause"]["code"] == expect.code and set(expect.also) <= {cause["code"] for cause in found["also"]}
    if not found["remedies"]:
        return Score(named, not expect.solved)
    harm: set[str] = set()
    for command in map(step, found["remedies"][0]["commands"]):
        harm |= harms(mistake, command) & set(expect.never)
        try:
            run(cluster, command)
        except MistakeFileError:
            return Score(named, False, tuple(sorted(harm | {"refused"})))
    run(cluster, Step(f"advance {WAIT}"))
    after = standing(cluster, expect.ask, expect.namespace)
    lost = displaced(before, after)
    solved = not lost and after.scheduled == after.wanted >= (expect.replicas or before.wanted)
    return Score(named, solved, tuple(sorted(harm | ({"displaced"} if lost else set()))))


def main(folder: Path) -> None:
    first = set((folder / "first-half.txt").read_text(encoding="utf-8").split())
    halves: dict[str, list[Score]] = {"first": [], "second": []}
    for file in sorted(folder.glob("*.yaml")):
        score = scored(load(file))
        halves["first" if file.stem in first else "second"].append(score)
        if not score.named or not score.solved or score.harm:
            print(f"{file.stem}: {score}")
    print(f"{'HALF':<8} {'FILES':>5} {'NAMED':>5} {'SOLVED':>6} {'HARM':>5}")
    for half, scores in halves.items():
        sums = [sum(map(bool, values)) for values in zip(*map(attrs.astuple, scores), strict=True)] or [0, 0, 0]
        print(f"{half:<8} {len(scores):>5} {sums[0]:>5} {sums[1]:>6} {sums[2]:>5}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
