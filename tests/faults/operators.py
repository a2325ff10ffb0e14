"""An operator of the simulated daemon: changes its configuration, cordons nodes, moves pods in the queue, copies all.

Whatever it does, the rules about objects hold; and nothing of it may be answered with `internal`.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import trio

from kschedd.service.errors import RpcError
from tests.faults.clients import KINDS, AnyClient, World, again_and_again, seen_in

SCHEDULER = "default-scheduler"
_SCORING = ("NodeResourcesFit", "PodTopologySpread", "ImageLocality")
#: Refusals that say that the call is wrong, or the daemon: neither may be here.
_FAULTS = frozenset(("internal", "bad_params", "unknown_method"))


def _calls(chance: random.Random) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """One of each that there is."""
    plugin = chance.choice(_SCORING)
    yield (
        "config.change",
        {"what": "weight", "profile": SCHEDULER, "plugin": plugin, "weight": chance.randrange(1, 9)},
    )
    yield "config.change", {"what": "plugin-off", "profile": SCHEDULER, "plugin": plugin}
    yield "config.change", {"what": "backoff", "seconds": 1, "max_seconds": chance.randrange(1, 5)}
    yield "config.undo", {}
    yield "nodes.cordon", {"name": f"n{chance.randrange(2)}"}
    yield "nodes.uncordon", {"name": f"n{chance.randrange(2)}"}
    yield (
        "queue.move",
        {"pod": f"default/p{chance.randrange(8)}", "place": chance.choice(("active", "backoff", "unschedulable"))},
    )
    yield "metrics.get", {}
    yield "scheduler.decisions", {}
    yield "snapshot.get", {}


async def operate(world: World) -> None:
    await again_and_again(world, lambda client: _use(client, world), http=False)


async def _use(client: AnyClient, world: World) -> None:
    while not world.ending:
        method, params = world.chance.choice(list(_calls(world.chance)))
        try:
            if method == "snapshot.get":
                await _copy(client, world)
            else:
                await client.call(method, **params)
        except RpcError as error:
            if error.code in _FAULTS:
                world.history.faults.append(f"{method} {params} is answered with {error.code}: {error}")
        await trio.sleep(0.1 * world.chance.random())


async def _copy(client: AnyClient, world: World) -> None:
    """Get a copy of the cluster, and record it as a list of each kind at the same version."""
    history = world.history
    lists = [history.begin("operator", "list", key=(kind, "", "")) for kind in KINDS]
    copy = await client.call("snapshot.get")
    for each in lists:
        assert each.key is not None
        each.version = copy["resource_version"]
        each.seen = [seen_in(raw) for raw in copy["objects"] if raw["kind"] == each.key[0]]
        each.ended = history.now()
