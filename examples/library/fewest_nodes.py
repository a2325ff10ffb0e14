"""The smallest number of nodes on which a workload fits, found by bisection on forks."""

from kschedd import Cluster, node, pod

PODS = [pod(f"p{number}", cpu=("500m", "1", "2")[number % 3], memory="1Gi") for number in range(60)]
base = Cluster()


def fits(many: int) -> bool:
    """Return whether all pods can be scheduled with this number of nodes."""
    with base.fork() as fork:
        fork.apply([node(f"n{number}", cpu="8", memory="32Gi") for number in range(many)], PODS)
        return not fork.pending()


low, high = 0, len(PODS)  # too few, enough
while high - low > 1:
    middle = (low + high) // 2
    low, high = (low, middle) if fits(middle) else (middle, high)
print(f"{high} nodes are enough, {low} are not")
