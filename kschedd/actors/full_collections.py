"""The task that has the garbage collector look at everything when that is due."""

import trio

from kschedd.garbage_collection import LOOK_S, FullCollections


async def look_now_and_then(collections: FullCollections) -> None:
    """Never returns."""
    while True:
        await trio.sleep(LOOK_S)
        collections.look()
