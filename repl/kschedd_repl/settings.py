"""Settings of the session: `setting NAME VALUE` at the prompt or in the rc file.

This module does no I/O and raises SettingError.
"""

from collections.abc import Callable
from typing import Final

import attrs

from kschedd.api.text.similar import did_you_mean
from kschedd.errors import KscheddError


@attrs.define(eq=False)
class SettingError(KscheddError):
    """An unknown setting, or an invalid value."""

    why: str

    def __str__(self) -> str:
        return self.why


@attrs.frozen
class Setting:
    meaning: str
    choices: tuple[str, ...]
    default: str
    free: bool = False  # True if other values are allowed as well


SETTINGS: Final[dict[str, Setting]] = {
    "editing": Setting("keys of the prompt", ("emacs", "vi"), "emacs"),
    "pager": Setting("the pager for long output: on ($PAGER, else less), off, or a command", ("on", "off"), "on", True),
    "confirm": Setting("ask before commands that cannot be undone", ("on", "off"), "on"),
    "suggest": Setting("show the rest of an earlier line in grey; the right arrow inserts it", ("on", "off"), "on"),
    "check": Setting("mark errors while typing", ("on", "off"), "on"),
}


@attrs.define(eq=False)
class SessionSettings:
    """The settings of a session. `changed` is called with the name of the setting after each change."""

    changed: Callable[[str], None] = lambda name: None
    _values: dict[str, str] = attrs.field(factory=dict)

    def __getitem__(self, name: str) -> str:
        return self._values.get(name, SETTINGS[name].default)

    def is_on(self, name: str) -> bool:
        return self[name] != "off"

    def set(self, name: str, value: str) -> None:
        setting = known_setting(name)
        if not value.strip() or not (setting.free or value in setting.choices):
            near = did_you_mean(value, setting.choices)
            raise SettingError(f'{name} "{value}": allowed are {", ".join(setting.choices)}{near}')
        self._values[name] = value
        self.changed(name)

    def table(self) -> str:
        rows = [(name, self[name], setting.meaning) for name, setting in SETTINGS.items()]
        width = max(len(value) for _, value, _ in rows)
        return "".join(f"{name:<9} {value:<{width}}  {meaning}\n" for name, value, meaning in rows)


def known_setting(name: str) -> Setting:
    if name not in SETTINGS:
        raise SettingError(f'there is no setting "{name}"{did_you_mean(name, SETTINGS) or ": `setting` lists them"}')
    return SETTINGS[name]
