"""RecentlyUsed: a bounded cache that drops the least recently used value.

RecentlyUsed is an OrderedDict; a caller that reads a value must call `move_to_end`.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(OrderedDict[K, V]):
    def keep(self, key: K, value: V, most: int) -> V:
        """Store the value as the most recently used one, and keep at most `most` (at least 1) values. Return the value.

        `most` may be lower than in earlier calls, and the value may replace an earlier value.
        """
        self[key] = value
        self.move_to_end(key)
        while len(self) > most:
            self.popitem(last=False)
        return value

    def keep_new(self, key: K, value: V, most: int) -> bool:
        """Store the value if the key has no value; return whether it was stored."""
        if key in self:
            return False
        self.keep(key, value, most)
        return True
