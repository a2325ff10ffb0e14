"""Output of the scheduler's state: the queue, waiting pods, decisions, status, and score weights."""

from collections.abc import Mapping, Sequence
from typing import Any

from kschedd.printing.columns.ages import age, span
from kschedd.printing.columns.by_kind import Raw
from kschedd.printing.reports.debugging import ahead_text, place_text, speed_text
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import NONE, Table, clean, flowing

_OF_GROUPS = ("pending_group", "incomplete_group")
PLACES = ("active", "backoff", "error_backoff", "unschedulable", "gated", *_OF_GROUPS, "in_flight")
_SELDOM = ("error_backoff", *_OF_GROUPS)  # shown only if not zero
_MOST_LEFT_OUT = 5  # objects that a mirror cannot store


def _text(value: Any, absent: str = "") -> str:
    if value is None or value == "" or value == []:
        return absent
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _span(value: Any, absent: str = NONE) -> str:
    return span(value) if isinstance(value, int | float) and not isinstance(value, bool) else absent


def counts_text(counts: Raw, style: TerminalStyle) -> str:
    """Return the counts on one line: `active 3 · backoff 0 · ...`."""
    shown = [place for place in PLACES if place in counts and (place not in _SELDOM or counts[place])]
    return style.plain(" · ").join(f"{place.replace('_', ' ')} {counts[place]}" for place in shown)


def queue_text(counts: Raw, style: TerminalStyle) -> str:
    """Return the counts on one line after their sum: `3 pods: active 3 · backoff 0 · ...`."""
    total = sum(counts[place] for place in PLACES if place in counts)
    return f"{total} {'pod' if total == 1 else 'pods'}: {counts_text(counts, style)}"


def queue_table(pods: Sequence[Raw]) -> Table:
    rows = []
    for pod in pods:
        plugins = pod.get("unschedulable_plugins") or pod.get("pending_plugins") or pod.get("gated_by")
        rows.append(
            (
                _text(pod.get("key")),
                _text(pod.get("place")),
                _text(pod.get("priority"), "0"),
                _text(pod.get("attempts"), "0"),
                _span(pod.get("since_s")),
                _text(plugins, NONE),
                _text(pod.get("message")),
            )
        )
    return Table(("POD", "PLACE", "PRIORITY", "ATTEMPTS", "SINCE", "PLUGINS", "MESSAGE"), tuple(rows))


def history_table(history: Sequence[Raw]) -> Table:
    """Return a pod's moves between sub-queues; times are in seconds since the pod was first added."""
    start = next((h["time_s"] for h in history if isinstance(h.get("time_s"), int | float)), 0.0)
    rows = []
    for move in history:
        at = move.get("time_s")
        rows.append(
            (
                f"{at - start:.3f}s" if isinstance(at, int | float) else "",
                _text(move.get("from"), NONE),
                _text(move.get("to"), NONE),
                _text(move.get("event")),
                _text(move.get("plugin"), NONE),
            )
        )
    return Table(("AFTER", "FROM", "TO", "BECAUSE OF", "HINT OF"), tuple(rows))


def stays_text(pod: Raw) -> str:
    """Return the time of a pod's first attempt and its time in each sub-queue; "" if they are unknown."""
    held = pod.get("held_s")
    if not isinstance(held, Mapping) or not held:
        return ""
    stays = ", ".join(f"{_text(place).replace('_', ' ')} {_span(seconds)}" for place, seconds in held.items())
    first = pod.get("first_attempt")
    tried = f"First tried {_text(first)}" if isinstance(first, str) else "Not tried yet"
    return f"{tried}. Held: {stays}.\n"


def waiting_table(waiting: Sequence[Raw]) -> Table:
    rows = [
        (_text(pod.get("pod")), _text(pod.get("node")), plugin, _span(left))
        for pod in waiting
        for plugin, left in sorted((pod.get("plugins") or {}).items())
    ]
    return Table(("POD", "NODE", "PLUGIN", "LEFT"), tuple(rows))


def decisions_table(decisions: Sequence[Raw], now: float) -> Table:
    rows = []
    for decision in decisions:
        visited, nominated = decision.get("visited"), decision.get("nominated_node")
        feasible = f"{_text(decision.get('feasible'), '0')}/{visited}" if visited else NONE
        rows.append(
            (
                age(decision.get("time"), now),
                _text(decision.get("pod")),
                _text(decision.get("attempt")),
                _text(decision.get("node"), NONE),
                feasible,
                _text(decision.get("score")),
                _text(decision.get("ties")),
                _text(decision.get("message")) + (f" (nominated to {nominated})" if nominated else ""),
            )
        )
    headers = ("AGE", "POD", "ATTEMPT", "NODE", "FEASIBLE", "SCORE", "TIES", "MESSAGE")
    return Table(headers, tuple(rows))


def events_table(events: Sequence[Raw], now: float, *, namespaces: bool) -> Table:
    rows = []
    for event in events:
        count = event.get("count") or 1
        seen = age(event.get("last_seen") or event.get("time"), now)
        about = _text(event.get("object"))
        namespace, name = _object(event.get("object"), event.get("namespace"))
        about = name or about
        row = (
            f"{seen} (x{count})" if count > 1 else seen,
            _text(event.get("type")),
            _text(event.get("reason")),
            about,
            _text(event.get("message")),
        )
        rows.append((namespace, *row) if namespaces else row)
    headers = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
    return Table(("NAMESPACE", *headers) if namespaces else headers, tuple(rows))


def _object(about: Any, namespace: Any) -> tuple[str, str]:
    """Return the namespace and `kind/name` of the object of an event; the argument is a map or a text."""
    if isinstance(about, Mapping):
        where = str(about.get("namespace") or namespace or "")
        return where, f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"
    parts = str(about or "").split("/")
    if len(parts) == 3:
        return parts[1], f"{parts[0].lower()}/{parts[2]}"
    return str(namespace or ""), f"{parts[0].lower()}/{parts[1]}" if len(parts) == 2 else str(about or "")


def weights_table(config: Raw, profile: str = "") -> Table:
    """Return the score plugins and their weights, for one profile or for all."""
    rows = []
    for name, points in profiles_of(config):
        if profile in ("", name):
            for plugin in _score_plugins(points):
                rows.append((name, str(plugin.get("name", "")), str(plugin.get("weight", 1))))
    return Table(("PROFILE", "PLUGIN", "WEIGHT"), tuple(rows))


def plugin_costs_table(costs: Sequence[Raw]) -> Table:
    """Return the durations of calls of out-of-tree plugins and of extenders, in milliseconds."""
    numbers = ("p50_ms", "p99_ms", "longest_ms")
    rows = [
        (
            str(cost["name"]),
            str(cost["call"]),
            str(cost["calls"]),
            *["-" if cost[number] is None else f"{cost[number]:.3g}" for number in numbers],
            str(cost["timeouts"]),
            str(cost["failures"]),
        )
        for cost in costs
    ]
    return Table(("PLUGIN", "CALL", "CALLS", "P50 MS", "P99 MS", "LONGEST MS", "TIMEOUTS", "FAILURES"), tuple(rows))


def profiles_of(config: Raw) -> list[tuple[str, Raw]]:
    """Return the pairs (name, profile) of a configuration, whose profiles are in a list or in a map by name."""
    profiles = config.get("profiles") or {}
    if isinstance(profiles, Mapping):
        return [(str(name), profile) for name, profile in profiles.items()]
    return [(str(profile.get("schedulerName") or profile.get("name") or ""), profile) for profile in profiles]


def _score_plugins(profile: Raw) -> list[Raw]:
    points = profile.get("plugins") or profile.get("points") or {}
    score = points.get("score") or []
    if isinstance(score, Mapping):
        enabled = score.get("enabled")
        score = enabled if enabled is not None else [{"name": name, "weight": w} for name, w in score.items()]
    return [plugin if isinstance(plugin, Mapping) else {"name": plugin} for plugin in score]


def status_text(info: Raw, status: Raw, style: TerminalStyle) -> str:
    """Return the output of `status`: the identity of the daemon, object counts and scheduling state."""
    lines = [
        (
            "Daemon",
            f"kschedd {info.get('version', '')}, pid {info.get('pid', '')}, up {_span(info.get('uptime_s'))}",
        ),
        ("Kubernetes", _text(info.get("kubernetes"))),
        ("Socket", _text(info.get("socket"))),
        ("REST API", _text(info.get("http"))),
        ("Profiles", ", ".join(map(str, info.get("profiles") or ()))),
        _origin(info),
        *_mirrored(info.get("mirror")),
        *_leader(info.get("leader")),
        *_recording(info.get("recording")),
        ("Seed", _text(info.get("seed"))),
        ("Objects", _objects(info.get("objects") or {}, style)),
        ("Nodes", _text(status.get("nodes"))),
        ("Pods", f"{_text(status.get('pods'), '0')} bound or being bound"),
        ("Queue", queue_text(_counts(status), style)),
        ("On the way", on_the_way_text(status, style)),
        ("Scheduled", _counted(status.get("scheduled"), "pod") + " since the start"),
        ("Failed", _counted(status.get("failed_attempts"), "attempt")),
        ("Decisions", f"{_rate(status.get('decisions_per_s'))}/s"),
    ]
    if info.get("read_only"):
        lines.append(("Read-only", style.paint(f"writes are refused: {info['read_only']}", "red")))
    if status.get("stopped_at"):
        stopped = status["stopped_at"]
        lines.append(("Stopped", f"{place_text(stopped)} ({stopped['why']})"))
    if status.get("speed", 1.0) != 1.0 or status.get("ahead_s"):
        at = f"{status['virtual_time']}, " if status.get("virtual_time") else ""
        lines.append(("Time", at + speed_text(status["speed"]) + ahead_text(status)))
    lines += [("Fault" if place else "Faults", text) for place, text in enumerate(_faults(info.get("faults") or ()))]
    room = " " * _LABEL
    return "".join(
        f"{label + ':':<{_LABEL}}{flowing(room + value, style)[_LABEL:]}\n" for label, value in lines if value
    )


def _counted(count: Any, what: str) -> str:
    return f"{_text(count, '0')} {what}{'' if count == 1 else 's'}"


_MOST_FAULTS = 20
_LABEL = 12  # width of the labels of `status`


def _faults(faults: Sequence[Raw]) -> list[str]:
    """Return a line for each object that the daemon failed to process."""
    lines = []
    for fault in faults[:_MOST_FAULTS]:
        named = "/".join(str(fault.get(part)) for part in ("kind", "namespace", "name") if fault.get(part))
        text = f"{fault.get('component', '')}: {fault.get('why', '')}"
        lines.append(clean(f"{named}: {text} ({fault.get('count', 1)} times)"))
    if len(faults) > _MOST_FAULTS:
        lines.append(f"and {len(faults) - _MOST_FAULTS} more")
    return lines


def on_the_way_text(status: Raw, style: TerminalStyle) -> str:
    """Return the number of assumed pods that are not bound yet, by stage; "" without such pods."""
    waiting, binding = status.get("waiting") or 0, status.get("binding") or 0
    parts = [f"{waiting} at Permit"] if waiting else []
    parts += [f"{binding - waiting} being bound"] if binding > waiting else []
    return style.plain(" · ").join(parts)


def _objects(objects: Raw, style: TerminalStyle) -> str:
    counted = sorted(objects.items(), key=lambda item: (-item[1], item[0]))
    return style.plain(" · ").join(f"{count} {kind}" for kind, count in counted if count)


def _counts(status: Raw) -> Raw:
    """Return the object counts, which are in the status itself or in a map within it."""
    counts = status.get("counts")
    return counts if isinstance(counts, Mapping) else status


def _rate(value: Any) -> str:
    if not isinstance(value, int | float):
        return "0"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _origin(info: Raw) -> tuple[str, str]:
    """Return the source of the objects, as label and name: the journal, or the mirrored cluster."""
    mirror = info.get("mirror")
    if mirror is None:
        return "Journal", _text(info.get("journal"), "off (in memory)")
    context = f" ({mirror['context']})" if mirror["context"] else ""
    heard = "" if mirror["unheard_s"] is None else f", last contact {_span(mirror['unheard_s'])} ago"
    why = f"; unreachable now: {mirror['unreachable']}" if mirror["unreachable"] else ""
    return "Mirror", f"of {mirror['server']}{context}{heard}{why}"


def _mirrored(mirror: Raw | None) -> list[tuple[str, str]]:
    """Return the release of a mirrored cluster, and the answers that may be wrong because objects are missing."""
    if mirror is None:
        return []
    lines = []
    if mirror.get("release"):
        rules = mirror["rules"]
        lines.append(("Release", f"{mirror['release']}; the rules of Kubernetes {rules} decide here (--kube-version)"))
    resources: dict[str, list[str]] = {}
    for each in mirror.get("unread") or ():
        resources.setdefault(each["affects"], []).append(each["resource"])
    lines += [("Forbidden", f"{', '.join(names)}: do not trust {affected}") for affected, names in resources.items()]
    left_out = mirror.get("left_out") or ()
    for each in left_out[:_MOST_LEFT_OUT]:
        name = f"{each['namespace']}/{each['name']}" if each["namespace"] else each["name"]
        lines.append(("Left out", f"{each['kind']} {name}: do not trust {each['affects']}: {each['why']}"))
    if len(left_out) > _MOST_LEFT_OUT:
        lines.append(("Left out", f"{len(left_out) - _MOST_LEFT_OUT} more objects, which the log names"))
    return lines


def _leader(state: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return the state of the leader election; empty unless the daemon schedules a real cluster."""
    if state is None:
        return []
    if not state["lease"]:
        return [("Leader", "this daemon, without election")]
    if state["leads"]:
        return [("Leader", f"this daemon, by the lease {state['lease']}")]
    return [("Leader", f"{state['leader'] or 'none yet'}, by the lease {state['lease']}; this daemon is on standby")]


def _recording(state: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    if state is None:
        return []
    if state["failure"]:
        return [("Recording", f"ENDED: {state['failure']} ({state['file']} has {state['notes']:,} notes)")]
    return [("Recording", f"{state['file']}, {state['notes']:,} notes, {state['bytes']:,} bytes")]
