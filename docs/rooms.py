"""Draw the rooms of kschedd and the imports between them: `python docs/rooms.py > rooms.svg`.

A room is a package of kschedd/ (or a module next to the packages); it is drawn one row above the highest room that it
imports, so every arrow points down. `--text` prints the rows and imports as text instead. It reads the code without
importing it.
"""

import argparse
import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOX, GAP, ROW = 118, 16, 92
_TIP = (
    '<marker id="tip" markerWidth="8" markerHeight="6" refX="8" refY="3" orient="auto">'
    '<path d="M0 0L8 3L0 6z"/></marker>'
)


def imports() -> dict[str, dict[str, int]]:
    """Return the number of import statements for each room and each room that it imports."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for top in (ROOT / "kschedd", ROOT / "repl" / "kschedd_repl"):
        for file in sorted(top.rglob("*.py")):
            room = _room(file.relative_to(top.parent).with_suffix("").parts)
            found[room]
            for name in _imported(ast.parse(file.read_text(encoding="utf-8"))):
                other = _room(tuple(name.split(".")))
                if other not in (room, "kschedd"):
                    found[room][other] += 1
    return {room: dict(others) for room, others in found.items() if room != "kschedd"}


def _room(parts: tuple[str, ...]) -> str:
    if parts[0] == "kschedd_repl":
        return "repl"
    return parts[1] if len(parts) > 1 and parts[1] != "__init__" else "kschedd"


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (name for name in names if name.split(".")[0] in ("kschedd", "kschedd_repl"))


def rows_of(graph: Mapping[str, Mapping[str, int]]) -> list[list[str]]:
    """Return the rooms by row, the lowest first. Rooms that import each other in a circle are put into one row."""
    height: dict[str, int] = {}

    def measure(room: str, above: tuple[str, ...]) -> int:
        if room in above:
            return 0
        if room not in height:
            height[room] = 1 + max((measure(o, (*above, room)) for o in graph.get(room, ())), default=-1)
        return height[room]

    for room in graph:
        measure(room, ())
    rows: list[list[str]] = [[] for _ in range(max(height.values()) + 1)]
    for room in sorted(height):
        rows[height[room]].append(room)
    return rows


def as_text(graph: Mapping[str, Mapping[str, int]]) -> str:
    rows = rows_of(graph)
    return "".join(
        f"{', '.join(row)}\n"
        + "".join(f"    {room} -> {', '.join(sorted(graph.get(room, ()))) or '-'}\n" for room in row)
        for row in reversed(rows)
    )


def as_svg(graph: Mapping[str, Mapping[str, int]]) -> str:
    rows = rows_of(graph)
    width = max(len(row) for row in rows) * (BOX + GAP) + GAP
    tall = len(rows) * ROW + GAP
    at = {
        room: ((width - len(row) * (BOX + GAP) + GAP) / 2 + place * (BOX + GAP), tall - (number + 1) * ROW + GAP)
        for number, row in enumerate(rows)
        for place, room in enumerate(row)
    }
    lines = [_arrow(at[room], at[other], count) for room, others in graph.items() for other, count in others.items()]
    boxes = [
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{BOX}" height="34" rx="5" fill="#e0ecff" stroke="#1d4ed8"/>'
        f'<text x="{x + BOX / 2:.0f}" y="{y + 22:.0f}" text-anchor="middle">{room}</text>'
        for room, (x, y) in at.items()
    ]
    size = f'width="{width}" height="{tall}" font-family="sans-serif" font-size="14"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><rect width="100%" height="100%" fill="white"/>'
        f"<defs>{_TIP}</defs>{''.join(lines)}{''.join(boxes)}</svg>\n"
    )


def _arrow(tail: tuple[float, float], tip: tuple[float, float], count: int) -> str:
    ends = f'x1="{tail[0] + BOX / 2:.0f}" y1="{tail[1] + 34:.0f}" x2="{tip[0] + BOX / 2:.0f}" y2="{tip[1]:.0f}"'
    width = min(0.5 + count / 12, 3)
    return f'<line {ends} stroke="#64748b" stroke-width="{width:.1f}" opacity="0.5" marker-end="url(#tip)"/>'


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the imports between the rooms of kschedd.")
    parser.add_argument("--text", action="store_true", help="as text instead of SVG")
    drawn = imports()
    sys.stdout.write(as_text(drawn) if parser.parse_args().text else as_svg(drawn))


if __name__ == "__main__":
    main()
