"""The differences between the recorded and the actual outcome of one case.

Mappings are compared key by key, and lists of equal length item by item, at every depth. The path of a difference is
written like `filter.node-003.reasons[0]`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

_MISSING = "(missing)"


def differences(want: Any, got: Any, path: str = "") -> Iterator[str]:
    """Yield one line for each path at which `got` differs from `want`."""
    if isinstance(want, Mapping) and isinstance(got, Mapping):
        for key in sorted({*want, *got}):
            below = f"{path}.{key}" if path else str(key)
            if key not in got:
                yield f"{below}: want {_shown(want[key])}, got {_MISSING}"
            elif key not in want:
                yield f"{below}: want {_MISSING}, got {_shown(got[key])}"
            else:
                yield from differences(want[key], got[key], below)
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for place, (wanted, found) in enumerate(zip(want, got, strict=True)):
            yield from differences(wanted, found, f"{path}[{place}]")
    elif want != got:
        yield f"{path}: want {_shown(want)}, got {_shown(got)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
