"""The task that runs full garbage collections when they are due."""

import trio

from kschedd.garbage_collection import LOOK_S, FullCollections


async def look_now_and_then(collections: FullCollections) -> None:
    """Check periodically whether a full collection is due; never returns."""
    while True:
        await trio.sleep(LOOK_S)
        collections.look()
