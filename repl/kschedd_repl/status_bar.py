"""The status bar's text: time, speed, seed, queue sizes, and where the scheduler stands still. Pure."""

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.printing.debugging import place_text, speed_text
from kschedd.printing.scheduling import counts_text
from kschedd.printing.tables import width_of
from kschedd.printing.terminal_style import TerminalStyle

Raw = Mapping[str, Any]


@attrs.define(eq=False)
class StatusBar:
    """`info` is the answer of daemon.info, `status` the latest item of scheduler.watch; both are replaced whole."""

    info: Raw = attrs.field(factory=dict)
    status: Raw = attrs.field(factory=dict)

    @property
    def stopped_at(self) -> str:
        """Where the scheduler is stopped; "" while it runs."""
        stopped = self.status.get("stopped_at")
        return place_text(stopped) if stopped else ""

    def text(self, style: TerminalStyle) -> str:
        return bar_text(self.info, self.status, self.stopped_at, style)


def bar_text(info: Raw, status: Raw, stopped_at: str, style: TerminalStyle) -> str:
    """One line; on a narrow terminal what matters least is left out."""
    if not status:
        return " connected "
    sign = style.plain(" │ ")
    # (how much it matters, text), in the order in which they are shown
    parts = [
        (1, f"STOPPED {stopped_at}" if stopped_at else ""),
        (3, _time(status)),
        (4, _speed(status)),
        (2, counts_text(_counts(status), style)),
        (5, f"{float(status.get('decisions_per_s') or 0):.0f}/s"),
        (6, f"nodes {status.get('nodes', 0)}"),
        (7, f"pods {status.get('pods', 0)}"),
        (9, f"scheduled {status.get('scheduled', 0)}"),
        (8, f"seed {info['seed']}" if info.get("seed") is not None else ""),
    ]
    kept = [part for part in parts if part[1]]
    while len(kept) > 1 and style.width and _width(kept, sign) > style.width:
        kept.remove(max(kept))
    return f" {sign.join(text for _, text in kept)} "


def _width(parts: list[tuple[int, str]], sign: str) -> int:
    return width_of(sign.join(text for _, text in parts)) + 2


def _time(status: Raw) -> str:
    return str(status.get("virtual_time") or "")


def _speed(status: Raw) -> str:
    speed = status.get("speed", 1)
    return speed_text(speed) if speed != 1 else ""


def _counts(status: Raw) -> Raw:
    return {name: value for name, value in status.items() if isinstance(value, int) and not isinstance(value, bool)}
