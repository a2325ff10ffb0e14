"""The differences between the recorded and the actual outcome of one case.

Mappings are compared key by key and lists of equal length item by item, at every depth. The path of a difference looks
like `filter.node-003.reasons[0]`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

_MISSING = "(missing)"


def differences(want: Any, run_case: Any, path: str = "") -> Iterator[str]:
    """One line for each path at which `run_case` differs from `want`."""
    if isinstance(want, Mapping) and isinstance(run_case, Mapping):
        for key in sorted({*want, *run_case}):
            below = f"{path}.{key}" if path else str(key)
            if key not in run_case:
                yield f"{below}: want {_shown(want[key])}, got {_MISSING}"
            elif key not in want:
                yield f"{below}: want {_MISSING}, got {_shown(run_case[key])}"
            else:
                yield from differences(want[key], run_case[key], below)
    elif isinstance(want, list) and isinstance(run_case, list) and len(want) == len(run_case):
        for place, (wanted, found) in enumerate(zip(want, run_case, strict=True)):
            yield from differences(wanted, found, f"{path}[{place}]")
    elif want != run_case:
        yield f"{path}: want {_shown(want)}, got {_shown(run_case)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
