"""The dashboard: the cluster on the whole screen, updated while it is shown, with keys to open details.

Tasks: one receives changes from the daemon and replaces the data, one loads the content of opened panes, and the screen
runs in a worker thread, as prompts do. This thread contains the view; loaded content is passed to it. Keys never wait
for the daemon: a pane is shown as soon as its content is loaded. Uses: the daemon, the terminal. Ends: with q,
Ctrl-C or Ctrl-D, or by cancellation.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import trio
from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.styles import Style

from kschedd.errors import KscheddError
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.rpc.client import Client
from kschedd.rpc.errors import ConnectionLostError, NoDaemonError
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.table import run_words
from kschedd_repl.dashboard.data import DashboardData, DashboardPane, DashboardView, NodeColumns
from kschedd_repl.dashboard.grid import ScreenSize, node_layout, room_for_nodes, room_in_pane, screen_lines
from kschedd_repl.link import DaemonConnection, together

_EVERY_S = 1.0  # seconds between two samples, and between two updates of the nodes
_RETRY_S = 0.3
_MOST_ROWS = 500  # pods per list
_MOST_DECISIONS = 100
_COLUMNS = 20  # number of columns by which one key scrolls a text sideways
_MEANING = 18  # column of the meanings of keys in the help
_NARROWEST = 20  # minimum number of columns for the output of a verb

STYLE = Style.from_dict(
    {
        "title": "bold",
        "heading": "ansicyan",
        "label": "ansibrightblack",
        "spark": "ansigreen",
        "keys": "reverse",
        "stopped": "bold ansiyellow",
        "chosen": "reverse",
        "cordoned": "ansiyellow",
        "good": "ansigreen",
        "bad": "ansired",
        "heat0": "ansibrightblack",
        "heat1": "ansiblue",
        "heat2": "ansicyan",
        "heat3": "ansigreen",
        "heat4": "ansiyellow",
        "heat5": "ansired",
    }
)
#: keys with their meaning in column `_MEANING`, and further lines
HELP = (
    "arrows, h j k l   choose a node; move in what is open; PageUp and PageDown by screens",
    "Enter             look into it: the pods of a node, then a pod",
    "e                 explain why a pod has its node, or no node",
    "d                 describe a node",
    "r                 nodes by the next resource: cpu, memory, pods, extended resources",
    "u                 pods without a node, by cause",
    "q, Escape         back; from the overview: leave",
    "",
    "Each cell of the map is a node. In a large cluster, a cell is the fullest of several nodes.",
    "Its digit is the requested share in tenths; X: everything is requested, c: cordoned.",
)


@attrs.define(eq=False)
class Dashboard:
    """A dashboard. `options` are options of prompt_toolkit: another input and output."""

    link: DaemonConnection
    session: VerbSession
    unicode: bool
    options: Mapping[str, Any] = attrs.field(factory=dict)
    data: DashboardData = attrs.field(factory=DashboardData)
    view: DashboardView = attrs.field(factory=DashboardView)
    _app: Application[None] = attrs.field(init=False)
    _open: Callable[[tuple[str, str]], None] = lambda source: None

    def __attrs_post_init__(self) -> None:
        control = FormattedTextControl(self._text, focusable=True, show_cursor=False)
        self._app = Application(
            layout=Layout(Window(control, wrap_lines=False, always_hide_cursor=True)),
            key_bindings=self._keys(),
            style=STYLE,
            full_screen=True,
            **self.options,
        )
        self._app.ttimeoutlen = 0.05  # seconds after which Escape counts as a separate key

    async def run(self) -> None:
        """Show the dashboard until the user exits."""
        send, receive = trio.open_memory_channel[tuple[str, str]](16)
        token = trio.lowlevel.current_trio_token()

        def ask(source: tuple[str, str]) -> None:
            try:
                send.send_nowait(source)
            except trio.WouldBlock:
                self._show(lambda view: attrs.evolve(view, message="busy: try again"))

        self._open = lambda source: token.run_sync_soon(ask, source)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow)
            nursery.start_soon(self._make_all, receive)
            nursery.start_soon(self._end_with_us)
            await trio.to_thread.run_sync(self._app.run)
            nursery.cancel_scope.cancel()

    async def _end_with_us(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self._in_screen(self._leave)

    # -- the daemon -------------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        while True:
            try:
                client = await self.link.up()
                self.data = attrs.evolve(self.data, info=await client.call("daemon.info"), connected=True)
                await together(partial(self._follow_status, client), partial(self._follow_nodes, client))
            except (RpcError, ConnectionLostError, NoDaemonError):
                self.data = attrs.evolve(self.data, connected=self.link.client is not None)
                self._app.invalidate()
            await trio.sleep(_RETRY_S)

    async def _follow_status(self, client: Client) -> None:
        async with client.subscribe("scheduler.watch") as stream:
            async for status in stream:
                self.data = attrs.evolve(self.data, status=status)
                self._app.invalidate()

    async def _follow_nodes(self, client: Client) -> None:
        while True:
            nodes = NodeColumns.of(await client.call("nodes.usage"))
            decisions = await client.call("scheduler.decisions", limit=_MOST_DECISIONS)
            self.data = attrs.evolve(self.data, nodes=nodes, decisions=decisions).sampled(self.data.status)
            self._app.invalidate()
            await trio.sleep(_EVERY_S)

    async def _make_all(self, receive: "trio.MemoryReceiveChannel[tuple[str, str]]") -> None:
        async for source in receive:
            try:
                lines, keys = await self._make(source)
            except (KscheddError, RpcError) as error:
                lines, keys = [f"error: {error}"], []
            self._show(partial(_with_content, source, lines, keys))

    async def _make(self, source: tuple[str, str]) -> tuple[list[str], list[str]]:
        """Return the lines of an opened pane, and the key of each line if the lines can be selected."""
        client = await self.link.up()
        match source:
            case ("node", name):
                found = await client.call(
                    "objects.list", kind="Pod", field_selector=f"spec.nodeName={name}", fields=["status.phase"]
                )
                pods = [(_key(pod), str((pod.get("status") or {}).get("phase") or "")) for pod in found["items"]]
                width = max((len(key) for key, _ in pods), default=0)
                return [f"{key:<{width}}  {phase}" for key, phase in pods] or ["no pods"], [key for key, _ in pods]
            case ("pending", _):
                groups = (await client.call("causes.pending"))[:_MOST_ROWS]
                lines = [
                    f"{each['count'] + each['missing']:>6}  {_first_of(each)}  {each['code']}: {each['message']}"
                    for each in groups
                ]
                return lines or ["no pod waits for a node"], [_first_of(each) for each in groups]
            case ("pod" | "explain" as what, key):
                namespace, _, name = key.partition("/")
                described = ["describe", name] if "/" in name else ["describe", "pod", name]
                words = described if what == "pod" else ["explain", name]
                return await self._of_verb([*words, "-n", namespace]), []
            case ("describe", name):
                return await self._of_verb(["describe", "node", name]), []
            case _:
                return help_lines(max(self._size().width - 1, 2 * _MEANING)), []

    async def _of_verb(self, words: Sequence[str]) -> list[str]:
        """Return the output of a verb in lines that fit the screen."""
        shown: list[str] = []
        width = max(self._size().width - 1, _NARROWEST)  # a pane begins with a space
        style = TerminalStyle(unicode=self.unicode, width=width)
        inner = attrs.evolve(
            self.session, write=shown.append, write_error=shown.append, style=style, measure=lambda: style
        )
        await trio.to_thread.run_sync(run_words, inner, words)
        lines = "".join(shown).expandtabs().splitlines()
        return [line[start : start + width] for line in lines for start in range(0, max(len(line), 1), width)]

    # -- the screen, in its thread ----------------------------------------------------------------------------

    def _in_screen(self, function: Callable[[], None]) -> None:
        """Run a function in the thread of the screen, if the screen is shown."""
        loop = self._app.loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(function)

    def _show(self, change: Callable[[DashboardView], DashboardView]) -> None:
        def apply() -> None:
            self.view = change(self.view)
            self._app.invalidate()

        self._in_screen(apply)

    def _size(self) -> ScreenSize:
        size = self._app.output.get_size()
        return ScreenSize(size.columns, size.rows, self.unicode)

    def _text(self) -> StyleAndTextTuples:
        shown: StyleAndTextTuples = []
        for place, line in enumerate(screen_lines(self.data, self.view, self._size())):
            shown += [("", "\n"), *line] if place else line
        return shown

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        moves = {"up": (0, -1), "k": (0, -1), "down": (0, 1), "j": (0, 1)}
        moves |= {"left": (-1, 0), "h": (-1, 0), "right": (1, 0), "l": (1, 0)}
        for key, (x, y) in moves.items():
            keys.add(key)(partial(self._move, x=x, y=y))
        for key, screens in {"pageup": -1, "b": -1, "pagedown": 1, "space": 1}.items():
            keys.add(key)(partial(self._page, screens=screens))
        keys.add("enter")(self._enter)
        keys.add("e")(self._explain)
        keys.add("d")(self._describe)
        keys.add("r")(self._resource)
        keys.add("u")(lambda event: self._push("pending", "", "pods without a node, by cause"))
        keys.add("?")(lambda event: self._push("help", "", "keys"))
        for key in ("q", "escape"):
            keys.add(key)(self._back)
        for key in ("c-c", "c-d"):
            keys.add(key)(lambda event: self._leave())
        return keys

    def _leave(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    def _back(self, event: KeyPressEvent) -> None:
        if self.view.panes:
            self.view = attrs.evolve(self.view, panes=self.view.panes[:-1], message="")
        else:
            self._leave()

    def _move(self, event: KeyPressEvent, x: int, y: int) -> None:
        if self.view.panes:
            if y:
                self._scroll(y)
            else:
                self._replace(self.view.panes[-1].shifted(_COLUMNS * x, self._size().width))
            return
        nodes, size = self.data.nodes, self._size()
        place = self.view.chosen(nodes)
        if place >= 0:
            layout = node_layout(len(nodes.names), size, room_for_nodes(size))
            place += x * layout.each + y * layout.each * layout.columns
            name = nodes.names[min(max(place, 0), len(nodes.names) - 1)]
            self.view = attrs.evolve(self.view, node=name, message="")

    def _page(self, event: KeyPressEvent, screens: int) -> None:
        if self.view.panes:
            self._scroll(screens * room_in_pane(self._size()))

    def _scroll(self, by: int) -> None:
        self._replace(self.view.panes[-1].moved(by, room_in_pane(self._size())))

    def _replace(self, pane: DashboardPane) -> None:
        self.view = attrs.evolve(self.view, panes=(*self.view.panes[:-1], pane))

    def _push(self, what: str, which: str, title: str) -> None:
        self.view = self.view.with_pane(DashboardPane((what, which), title, loading=True))
        self._open((what, which))

    def _enter(self, event: KeyPressEvent) -> None:
        node, pod = self._node(), self._pod()
        if not self.view.panes and node:
            self._push("node", node, f"pods of {node}")
        elif pod and self.view.panes[-1].keys:
            self._push("pod", pod, pod)

    def _explain(self, event: KeyPressEvent) -> None:
        pod = self._pod()
        if pod and self.view.panes[-1].source[0] != "explain":
            self._push("explain", pod, f"explain {pod}")
        elif not pod:
            self.view = attrs.evolve(self.view, message="e explains a pod: choose one, by Enter or u")

    def _describe(self, event: KeyPressEvent) -> None:
        node = self._node()
        if node:
            self._push("describe", node, node)

    def _resource(self, event: KeyPressEvent) -> None:
        known = self.data.nodes.resources
        after = known.index(self.view.resource) + 1 if self.view.resource in known else 0
        self.view = attrs.evolve(self.view, resource=known[after % len(known)], message="")

    def _node(self) -> str:
        """Return the selected node; "" without one."""
        panes = self.view.panes
        if panes:
            return panes[-1].source[1] if panes[-1].source[0] == "node" else ""
        place = self.view.chosen(self.data.nodes)
        return self.data.nodes.names[place] if place >= 0 else ""

    def _pod(self) -> str:
        """Return the selected pod; "" without one."""
        if not self.view.panes:
            return ""
        pane = self.view.panes[-1]
        if pane.keys:
            return pane.keys[pane.selected]
        return pane.source[1] if pane.source[0] in ("pod", "explain") else ""


def help_lines(width: int) -> list[str]:
    """Return the help, wrapped to this number of columns."""
    wrapped: list[str] = []
    for line in HELP:
        margin = " " * _MEANING if line[_MEANING - 2 : _MEANING] == "  " else ""
        wrapped += textwrap.wrap(line, width, subsequent_indent=margin) or [""]
    return wrapped


def _with_content(
    source: tuple[str, str], lines: Sequence[str], keys: Sequence[str], view: DashboardView
) -> DashboardView:
    return view.with_content(source, lines, keys)


def _first_of(group: Mapping[str, Any]) -> str:
    """Return the first workload in the row: `default/web` for a pod, `default/deployment/web` for another workload."""
    first = group["workloads"][0]
    kind = "" if first["kind"] == "Pod" else f"{first['kind'].lower()}/"
    return f"{first['namespace'] or 'default'}/{kind}{first['name']}"


def _key(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata'].get('namespace') or 'default'}/{pod['metadata']['name']}"
