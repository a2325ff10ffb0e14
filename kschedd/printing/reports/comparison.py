"""Output of a comparison of two runs: pods placed on other nodes, and the deciding reasons."""

from collections.abc import Iterator, Mapping
from typing import Any


def comparison_text(found: Mapping[str, Any], most: int) -> str:
    """Return the result of `capacity.compare` for two configurations, with at most `most` of the differing pods."""
    return "".join(f"{line}\n" for line in _lines(found, most))


def _lines(found: Mapping[str, Any], most: int) -> Iterator[str]:
    for each in found["different"][:most]:
        yield f"~ pod {each['pod']}: {each['a'] or 'pending'} | {each['b'] or 'pending'}"
        if each["plugin"]:
            yield f"    {each['plugin']}: {each['b']} against {each['a']} {each['on_a']:+} | {each['on_b']:+}"
        elif each["why"]:
            yield f"    {each['why']}"
    if len(found["different"]) > most:
        yield f"  ... and {len(found['different']) - most} more pods (--limit)"
    same = found["pods"] - len(found["different"])
    pending = " | ".join(map(str, found["pending"]))
    yield f"{found['pods']} pods: {same} alike, {len(found['different'])} different; pending: {pending}"
