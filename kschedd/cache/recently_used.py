"""RecentlyUsed: a bounded cache, from which goes what was used longest ago.

It is an OrderedDict, the latest use at the end: whoever takes a value from it calls `move_to_end`.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(OrderedDict[K, V]):
    def keep(self, key: K, value: V, most: int) -> V:
        """Keep the value, as the one used last, and `most` (1 or more) values in all; returns it.

        The bound may be lower than it was when the others came, and the value may take the place of an old one.
        """
        self[key] = value
        self.move_to_end(key)
        while len(self) > most:
            self.popitem(last=False)
        return value

    def keep_new(self, key: K, value: V, most: int) -> bool:
        """Keep the value if the key has none; whether it had none."""
        if key in self:
            return False
        self.keep(key, value, most)
        return True
