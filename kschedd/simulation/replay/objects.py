"""The objects of a replay, as the scheduler had observed them, in a store that can be read and forked."""

from collections.abc import Sequence

from kschedd.controllers.runner import ControllerState
from kschedd.controllers.running.controller import Controller
from kschedd.scheduling.snapshots.cluster import ClusterSnapshot, earliest
from kschedd.scheduling.snapshots.fork import DriverSnapshot
from kschedd.simulation.replay.player import Player
from kschedd.store.cluster_api import listed
from kschedd.store.objects.log import WatchEvent
from kschedd.store.store import Store
from kschedd.values import run_steps

_LEFTOVER_S = 30.0  # time in seconds until the fork's next flush, because the recording does not contain it


class ReplayedObjects:
    """The objects of a replay. The store is created on first use and is then updated with the replay."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._store: Store | None = None
        self._since: list[WatchEvent] = []
        player.on_events(self._since.extend)

    def store(self) -> Store:
        events, player = self._since[:], self._player
        self._since.clear()
        store = self._store
        if store is not None and _follow(store.version, events):
            store.replay((event.type, event.new) for event in events)
            return store
        header = player.recording.header
        store = self._store = Store(
            now=lambda: player.now_s,
            seed=header.seed,
            objects=list(player.objects.values()),
            version=player.version,
            rules=player.driver.machine.config.rules,
        )
        return store

    def snapshot(self, controllers: Sequence[Controller]) -> ClusterSnapshot:
        """Return the state from which a fork continues; the fork's controllers start from the present objects."""
        player, store = self._player, self.store()
        driver = DriverSnapshot.of(player.driver)
        states = [ControllerState(each, store.version, tuple(listed(store, each.kinds))) for each in controllers]
        return ClusterSnapshot(
            driver,
            player.queue.snapshot(),
            states,
            run_steps(store.forking(earliest(driver, states))),
            player.now_s,
            player.now_s,
            player.now_s + _LEFTOVER_S,
        )


def _follow(version: int, events: Sequence[WatchEvent]) -> bool:
    """Return whether the first event directly follows the version of the store."""
    return all(event.version == number for number, event in enumerate(events, version + 1))
