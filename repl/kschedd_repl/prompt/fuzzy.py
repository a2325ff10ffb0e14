"""Fuzzy search: lines that contain the letters of a query in order, best match first. Pure."""

from collections.abc import Iterable

_MOST = 200  # lines found


def fuzzy(query: str, lines: Iterable[str]) -> list[str]:
    """Return the distinct matching lines, best first; `lines` are newest first, which decides ties."""
    scored: list[tuple[int, int, str]] = []
    for age, line in enumerate(dict.fromkeys(lines)):
        score = match_score(query, line)
        if score is not None:
            scored.append((score, age, line))
    return [line for _, _, line in sorted(scored)[:_MOST]]


def match_score(query: str, line: str) -> int | None:
    """Return the distance between the letters: 0 for a line that begins with the query; None for no match.

    Case matters only if the query contains capital letters. Spaces in the query match any text between two words.
    """
    folded = line if query != query.lower() else line.lower()
    if query in folded:
        return min(folded.index(query), 1)
    best: int | None = None
    letters = query.replace(" ", "")
    if not letters:
        return None
    for start, char in enumerate(folded):
        if char != letters[0]:
            continue
        end = _end(letters, folded, start)
        if end is None:
            break  # later starts cannot match either
        spread = end - start - len(letters) + 2
        best = spread if best is None else min(best, spread)
    return best


def _end(letters: str, line: str, start: int) -> int | None:
    at = start
    for letter in letters:
        found = line.find(letter, at)
        if found < 0:
            return None
        at = found + 1
    return at
