"""Texts about node pools: launches, pods for which no pool launches a node, and disagreements with the scheduler."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import Table, render

Raw = Mapping[str, Any]
_MOST: Final = 20  # pods that are named with their reasons
_MOST_NODES: Final = 50  # nodes that are named with a verdict


def launch_text(found: Raw, style: TerminalStyle | None = None) -> str:
    """Return the launches as a table, then the pods without a launch."""
    style = style or TerminalStyle()
    text = ""
    if found["launches"]:
        rows = tuple(_row(each) for each in found["launches"])
        text = render(Table(("LAUNCH", "POOL", "TYPE", "ZONE", "CAPACITY", "PRICE/H", "PODS"), rows), style)
        text += f"price per hour: {price_text(found['price'])}\n"
    elif not found["refused"] and not found["existing"]:
        text = "no pod is unschedulable: nothing is launched\n"
    else:
        text = f"{found['autoscaler']} launches no node\n"
    if found["existing"]:
        text += f"{_pods(len(found['existing']))} fit on the present nodes by the rules of {found['autoscaler']}\n"
    return text + "".join(f"{line}\n" for line in _refused(found["refused"]))


def pod_launch_text(found: Raw) -> str:
    """Return an autoscaler's decision about one pending pod."""
    pod, name, launch = found["pod"], found["autoscaler"], found["launch"]
    if launch is not None:
        place = _place(launch)
        price = price_text(launch["price"])
        node = f"node {launch['name']} (pool {launch['pool']}{f': {place}' if place else ''}, {price} per hour)"
        if found["ready_at"]:
            return f"{name} is launching {node} for {pod}; it is ready at {found['ready_at']}\n"
        return f"{name} launches {node} for {pod}\n"
    if found["existing"]:
        return (
            f"{name} launches no node for {pod}: by its rules, the pod fits on {found['existing']}, although the "
            "scheduler does not place it there\n"
        )
    return "".join(f"{line}\n" for line in _refused([{"pod": pod, "pools": found["refused"]}]))


def _row(each: Raw) -> tuple[str, ...]:
    return (
        each["name"],
        each["pool"],
        each["type"],
        each["zone"] or "-",
        each["capacity_type"] or "-",
        price_text(each["price"]),
        str(len(each["pods"])),
    )


def price_text(price: float | None) -> str:
    return "unknown" if price is None else f"{price:.4f}".rstrip("0").rstrip(".") if price else "0"


def _refused(refused: Sequence[Raw]) -> Iterator[str]:
    """Yield lines about the pods without a launch; pods with equal reasons share them."""
    by_reason: dict[tuple[tuple[str, str, str], ...], list[str]] = {}
    for each in refused:
        reasons = tuple((why["pool"], why["rule"], why["why"]) for why in each["pools"])
        by_reason.setdefault(reasons, []).append(each["pod"])
    for reasons, pods in list(by_reason.items())[:_MOST]:
        more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
        yield f"no pool launches a node for {pods[0]}{more}:"
        for pool, rule, why in reasons:
            yield f"  {f'pool {pool} ({rule})' if pool else rule}: {why}"
    if len(by_reason) > _MOST:
        yield f"... and {len(by_reason) - _MOST} more reasons; -o json has them"


def removal_text(found: Raw, style: TerminalStyle | None = None) -> str:
    """Return verdicts about nodes, and the removals."""
    style = style or TerminalStyle()
    text = ""
    if found["nodes"]:
        heads = ("NODE", "POOL", "PODS", "PRICE/H", "VERDICT", "RULE", "WHY")
        first = sorted(found["nodes"], key=lambda each: each["verdict"] == "keep")
        text = render(Table(heads, tuple(_verdict(each) for each in first[:_MOST_NODES])), style)
        counts = Counter(each["verdict"] for each in first)
        if len(first) > _MOST_NODES:
            text += f"... and {len(first) - _MOST_NODES:,} more nodes; -o json has them\n"
        text += f"nodes: {', '.join(f'{count:,} {verdict}' for verdict, count in counts.items())}\n"
    for each in found["removals"]:
        text += f"removed ({each['reason']}): {', '.join(each['nodes'])}"
        new = each["replacement"]
        if new is not None:
            text += f"; replaced by {new['name']} ({_place(new)})"
        text += f"; saves {price_text(each['saved'])} per hour\n"
    if not found["removals"]:
        return text + f"{found['autoscaler']} removes no node\n"
    saved = [each["saved"] for each in found["removals"]]
    return text + f"saved per hour: {price_text(None if None in saved else sum(saved))}\n"


def _verdict(each: Raw) -> tuple[str, ...]:
    why = each["why"] or ("" if each["saved"] is None else f"saves {price_text(each['saved'])} per hour")
    return (
        each["node"],
        each["pool"] or "-",
        str(each["pods"]),
        price_text(each["price"]),
        each["verdict"],
        each["rule"],
        why,
    )


def _place(node: Raw) -> str:
    return ", ".join(part for part in (node["type"], node["zone"], node["capacity_type"]) if part)


def pools_text(found: Raw, style: TerminalStyle) -> str:
    """Return an autoscaler's decision, and where the scheduler disagrees."""
    if "removals" in found:
        return removal_text(found, style)
    return launch_text(found, style) + "".join(f"{line}\n" for line in _disagreements(found))


def _disagreements(found: Raw) -> Iterator[str]:
    differing, name, count = found["disagreements"], found["autoscaler"], found["expected"]
    pending = [each for each in differing if not each["node"]]
    elsewhere = [each for each in differing if each["node"]]
    swapped = (
        f"; {_pods(found['swapped'])} in the place of an equal pod, or on an equal node" if found["swapped"] else ""
    )
    if not differing:
        if count:
            yield f"the scheduler agrees with {name} about {_pods(count)}{swapped}"
    else:
        yield (
            f"the scheduler disagrees with {name} about {len(differing)} of {_pods(count)}: {len(pending)} pending, "
            f"{len(elsewhere)} on a node of another pool{swapped}"
        )
    for each in [*pending, *elsewhere][:_MOST]:
        yield f"  {each['pod']}: {name} expects {each['expected']}, the scheduler: {each['node'] or 'pending'}"
        if each["why"]:
            yield f"    {each['why']}"
    if len(differing) > _MOST:
        yield f"  ... and {len(differing) - _MOST} more; -o json has them"
    if found["unused"]:
        yield f"launched, but without a pod: {', '.join(found['unused'])}"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count:,} pods"
