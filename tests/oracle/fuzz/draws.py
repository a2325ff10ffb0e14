"""Random draws for fuzz inputs: a seeded generator, and the names and labels that objects share."""

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
Raw = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"

NAMESPACES = ("default", "team-a", "team-b")
TEAMS = {"default": "none", "team-a": "blue", "team-b": "green"}
APPS = ("web", "db", "cache", "batch")
TIERS = ("front", "back")
PRIORITIES = (-10, 0, 0, 0, 5, 100, 1000)
IMAGES = tuple(f"registry.example.com/{name}:v1" for name in ("web", "db", "cache", "batch", "tools"))
TAINTS = (("dedicated", "db"), ("dedicated", "web"), ("spot", ""), ("zone-drain", "a"))
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
EXTENDED = "example.com/widget"


class Draw(Random):
    """Draws from one seed. A generator whose draws depend only on seed, family and number of the input."""

    def chance(self, percent: int) -> bool:
        return self.randrange(100) < percent

    def some(self, values: Sequence[T], least: int, most: int) -> list[T]:
        """Return between `least` and `most` different values in random order."""
        return self.sample(values, min(len(values), self.randint(least, most)))

    def cpu(self, low: int, high: int) -> str:
        """Return an amount in millicores, written in one of the valid forms."""
        milli = self.randint(low, high)
        if self.chance(60):
            milli = max(low, milli // 250 * 250)
        return f"{milli // 1000}" if milli % 1000 == 0 else self.choice([f"{milli}m", f"{milli / 1000:g}"])

    def memory(self, low: int, high: int) -> str:
        """Return an amount in MiB, written in one of the valid forms."""
        mebi = self.randint(low, high)
        if mebi % 1024 == 0 and self.chance(60):
            return f"{mebi // 1024}Gi"
        return self.choice([f"{mebi}Mi", f"{mebi << 10}Ki", f"{mebi << 20}", f"{mebi}M"])

    def labels(self) -> dict[str, str]:
        """Return the labels of a pod."""
        labels = {"app": self.choice(APPS)}
        if self.chance(50):
            labels["tier"] = self.choice(TIERS)
        if self.chance(20):
            labels["version"] = self.choice(("1", "2"))
        return labels

    def selector(self) -> Raw:
        """Return a selector for pods."""
        if self.chance(60):
            return {"matchLabels": {"app": self.choice(APPS)}}
        operator = self.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        key, values = self.choice((("app", APPS), ("tier", TIERS), ("version", ("1", "2"))))
        expression: Raw = {"key": key, "operator": operator}
        if operator in ("In", "NotIn"):
            expression["values"] = self.some(values, 1, 2)
        return {"matchExpressions": [expression]}

    def topology(self) -> str:
        return self.choice((HOSTNAME, ZONE, ZONE, REGION))
