"""docs/DEBUGGING.md: its screens are what the commands print, in virtual time.

KSCHEDD_REWRITE_SCENARIOS=1 writes the page anew; the difference is for review.
"""

import os
import re
from pathlib import Path

from kschedd.scenarios.commands import ScenarioCluster

PAGE = Path(__file__).parent.parent / "docs" / "DEBUGGING.md"
_SCREEN = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)


def commands_of(screen: str) -> list[tuple[str, str]]:
    """Each command of a screen with its input."""
    found: list[tuple[str, str]] = []
    lines = iter(screen.splitlines())
    for line in lines:
        if line.startswith("$ kschedd "):
            command, reads, _ = line.removeprefix("$ kschedd ").partition(" <<EOF")
            given = ""
            while reads and (text := next(lines)) != "EOF":
                given += text + "\n"
            found.append((command, given))
    return found


def replayed(cluster: ScenarioCluster, screen: str) -> str:
    """The screen with what its commands print now."""
    shown = ""
    for command, given in commands_of(screen):
        shown += f"$ kschedd {command}" + (f" <<EOF\n{given}EOF\n" if given else "\n")
        shown += "".join(line.rstrip() + "\n" for line in cluster.do(command, given).splitlines())
    return shown


def test_the_screens_are_what_the_commands_print(tmp_path: Path) -> None:
    text = PAGE.read_text()
    cluster = ScenarioCluster(tmp_path)
    now = _SCREEN.sub(lambda found: replayed(cluster, found[0]), text)
    if os.environ.get("KSCHEDD_REWRITE_SCENARIOS") == "1":
        PAGE.write_text(now)
    assert len(_SCREEN.findall(text)) == 7
    assert now == text
