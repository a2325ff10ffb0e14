"""The text of the status bar: time, speed, seed, queue sizes, and where scheduling is stopped. Pure."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kschedd.printing.reports.debugging import place_text
from kschedd.printing.reports.scheduling import PLACES, counts_text
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import width_of

Raw = Mapping[str, Any]
_WIDE = 80  # number of columns; a narrower bar omits empty queues


@attrs.define(eq=False)
class StatusBar:
    """A status bar.

    `info` is the result of daemon.info, `status` the latest item of scheduler.watch. Both values are replaced as a
    whole.
    """

    info: Raw = attrs.field(factory=dict)
    status: Raw = attrs.field(factory=dict)
    clock: Callable[[], float] = time.time  # seconds since the epoch

    @property
    def stopped_at(self) -> str:
        """The place where scheduling is stopped; "" while it runs."""
        stopped = self.status.get("stopped_at")
        if isinstance(stopped, Mapping):
            return place_text(stopped)
        return str(stopped or "a pause") if self.status.get("paused") else ""

    @property
    def stopped_briefly(self) -> str:
        """The same place for the prompt: the next step, such as `filter NodeAffinity`; between attempts, the pod."""
        stopped = self.status.get("stopped_at")
        if not isinstance(stopped, Mapping):
            return self.stopped_at and "stopped"
        parts = [str(stopped[name]) for name in ("point", "plugin") if stopped.get(name)]
        pod = str(stopped.get("pod") or "").removeprefix("default/")
        return " ".join(["stopped", *([pod] if pod else []), *parts])

    def time_parts(self) -> list[str]:
        """Return the time, its speed and the seed, as far as they are known."""
        seed = f"seed {self.info['seed']}" if self.info.get("seed") is not None else ""
        return [part for part in (_time(self.status, self.clock()), _speed(self.status), seed) if part]

    def text(self, style: TerminalStyle) -> str:
        return bar_text(self.info, self.status, self.stopped_at, self.clock(), style)


def bar_text(info: Raw, status: Raw, stopped_at: str, now: float, style: TerminalStyle) -> str:
    """Return the status bar as one line; on a narrow terminal, the least important parts are omitted."""
    if not status:
        return " connected "
    sign = style.plain(" │ ")
    # pairs of priority and text, in display order
    parts = [
        (1, f"STOPPED: {stopped_at}" if stopped_at else ""),
        (3, _time(status, now)),
        (4, _speed(status)),
        (2, counts_text(_counts(status, nonzero=0 < style.width < _WIDE), style) or "queue empty"),
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


def _time(status: Raw, now: float) -> str:
    """Return the cluster's time in UTC: this machine's time and the lead of the cluster, or virtual time.

    If time passes at another speed, the REPL does not know the cluster's time.
    """
    if status.get("virtual_time"):
        return str(status["virtual_time"]).removesuffix("Z").replace("T", " ")
    if status.get("speed", 1) != 1:
        return ""
    return time.strftime("%H:%M:%S", time.gmtime(now + (status.get("ahead_s") or 0.0)))


def _speed(status: Raw) -> str:
    speed = status.get("speed", 1)
    return "virtual" if speed == 0 else f"x{speed:g}" if speed != 1 else ""


def _counts(status: Raw, *, nonzero: bool) -> Raw:
    return {name: value for name, value in status.items() if name in PLACES and (value or not nonzero)}
