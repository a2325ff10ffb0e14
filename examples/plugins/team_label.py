"""TeamLabel: an admission plugin that refuses pods without a team, and a team's change.

    kschedd run --plugin examples/plugins/team_label.py

It is asked after all that is built in, before quotas are counted. Being given is being on:
`--disable-admission-plugins TeamLabel` turns it off.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

LABEL = "team"


class TeamLabel:
    name: ClassVar = "TeamLabel"
    kinds: ClassVar = ("Pod",)

    def validate(self, operation: str, new: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> str | None:
        """None lets it pass. `new` is None for a DELETE, `old` for a CREATE; both are as `get -o json` shows them."""
        if new is None:
            return None
        team = _team(new)
        if not team:
            return f"every pod must name its team in the label {LABEL}"
        if old is not None and _team(old) not in ("", team):
            return f"the label {LABEL} may not change from {_team(old)}"
        return None


def _team(pod: Mapping[str, Any]) -> str:
    return str((pod["metadata"].get("labels") or {}).get(LABEL, ""))
