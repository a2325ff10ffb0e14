"""Plots of a cluster with matplotlib, in one style. Plots require the extra: pip install "kschedd[plots]"."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from kschedd.causes.answers import PendingGroup
from kschedd.sdk.records import Records, optional_library
from kschedd.sdk.records_of_objects import NodeRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLE: Final = {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.3}
_MOST_BARS: Final = 60
_WIDEST_LABEL: Final = 60


def utilization(nodes: Records[NodeRecord], axes: "Axes | None" = None) -> "Axes":
    """Draw the requested share of CPU and memory: a bar for each node, or a histogram of more than 60 nodes.

    Returns the matplotlib Axes; `axes`: the Axes to draw on. Raises MissingLibraryError.
    """
    shares = {"CPU": [node.cpu_used for node in nodes], "memory": [node.memory_used for node in nodes]}
    with style() as pyplot:
        axes = pyplot.subplots()[1] if axes is None else axes
        if len(nodes) > _MOST_BARS:
            axes.hist(list(shares.values()), bins=20, range=(0, 1), label=list(shares))
            axes.set(xlabel="requested share of a node", ylabel="nodes")
        else:
            for number, (name, values) in enumerate(shares.items()):
                places = [place + 0.4 * number for place in range(len(nodes))]
                axes.barh(places, values, height=0.4, label=name)
            axes.set_yticks([place + 0.2 for place in range(len(nodes))], [node.name for node in nodes])
            axes.set(xlabel="requested share", xlim=(0, 1))
            axes.invert_yaxis()
        axes.legend()
        return axes


def causes(groups: Sequence[PendingGroup], axes: "Axes | None" = None) -> "Axes":
    """Draw the number of pending pods by cause, and return the matplotlib Axes. Raises MissingLibraryError."""
    with style() as pyplot:
        axes = pyplot.subplots()[1] if axes is None else axes
        labels = [f"{group.code}: {group.message}"[:_WIDEST_LABEL] for group in groups]
        axes.barh(labels, [group.count for group in groups])
        axes.set(xlabel="pending pods")
        axes.invert_yaxis()
        return axes


@contextmanager
def style() -> Iterator[Any]:
    """Return pyplot with the style of all plots."""
    pyplot = optional_library("matplotlib.pyplot", "plots")
    with pyplot.rc_context(_STYLE):
        yield pyplot
