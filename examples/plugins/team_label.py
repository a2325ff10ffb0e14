"""TeamLabel: an admission plugin that rejects pods without a team, and changes of the team.

    kschedd run --plugin examples/plugins/team_label.py

The plugin is called after all built-in plugins, before quotas are counted. The plugin is enabled if its file is given;
`--disable-admission-plugins TeamLabel` disables it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

LABEL = "team"


class TeamLabel:
    name: ClassVar = "TeamLabel"
    kinds: ClassVar = ("Pod",)

    def validate(self, operation: str, new: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> str | None:
        """None lets it pass.

        Return the reasons for a rejection. `new` is None for a DELETE, `old` for a CREATE; both have the form of `get
        -o json`.
        """
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
