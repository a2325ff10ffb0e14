"""Resource amounts in a readable format. Amounts are rounded up, so that the printed amount is always enough.

Units: CPU in millicores, memory and storage in bytes, all other resources in counts.
"""

from typing import Final

_IN_BYTES: Final = ("memory", "ephemeral-storage")
_UNITS: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def amount(resource: str, units: int) -> str:
    """Return an amount as text. `500m`, `2`, `1.5Gi`."""
    if resource == "cpu":
        return str(units // 1000) if units % 1000 == 0 else f"{units}m"
    if resource in _IN_BYTES or resource.startswith("hugepages-"):
        for suffix, size in _UNITS:
            if units >= size:
                tenths = -(-units * 10 // size)
                return f"{tenths // 10}{suffix}" if tenths % 10 == 0 else f"{tenths / 10}{suffix}"
    return str(units)
