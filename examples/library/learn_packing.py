"""A learner that places more pods than random choices: the cross-entropy method for a linear score of nodes.

Requires gymnasium: pip install "kschedd[gym]". The program takes about half a minute on one core.
"""

from collections.abc import Callable

import numpy as np

from kschedd import KubeSchedulingEnv, node, pod

drawn = np.random.default_rng(3)
NODES = [node(f"n{number}", cpu=("4", "16")[number % 2], memory=("64Gi", "16Gi")[number % 2]) for number in range(8)]
# for nodes with much memory, nodes with many CPUs, and both
SIZES = [("500m", "8Gi"), ("2", "1Gi"), ("2", "2Gi")]
PODS = [pod(f"p{number}", cpu=cpu, memory=memory) for number, (cpu, memory) in enumerate(drawn.choice(SIZES, 90))]
env = KubeSchedulingEnv(NODES, PODS, shuffle=True)


def features(seen: dict[str, np.ndarray]) -> np.ndarray:
    """Return features of each node: the used shares, and how well its size and free share match the pod's requests."""
    free = (1 - seen["used"]) * seen["size"]
    return np.concatenate((seen["used"], seen["size"] * seen["pod"], free * seen["pod"], free - seen["pod"]), axis=1)


Policy = Callable[[dict[str, np.ndarray], int], np.ndarray]


def placed(policy: Policy, seed: int) -> int:
    """Return the number of pods placed in one episode.

    `policy` scores the nodes; its arguments include kube-scheduler's choice.
    """
    seen, info = env.reset(seed=seed)
    over = not seen["mask"].any()
    while not over:
        scores = policy(seen, info["default_choice"])
        action = int(np.where(seen["mask"] > 0, scores, -np.inf).argmax())
        seen, _, over, _, info = env.step(action)
    return int(info["placed"])


def linear(weights: np.ndarray) -> Policy:
    """Return the policy that scores nodes by a weighted sum of their features."""
    return lambda seen, default: features(seen) @ weights


def at_random(seen: dict[str, np.ndarray], default: int) -> np.ndarray:
    """Score nodes at random."""
    return drawn.random(len(NODES))


def as_kube_scheduler(seen: dict[str, np.ndarray], default: int) -> np.ndarray:
    """Score the node that kube-scheduler would choose the highest."""
    scores: np.ndarray = np.arange(len(NODES)) == default
    return scores


size = features(env.reset(seed=0)[0]).shape[1]
mean, deviation = np.zeros(size), np.ones(size)
for _ in range(6):
    tried = drawn.normal(mean, deviation, (16, size))
    results = [np.mean([placed(linear(weights), 100 + seed) for seed in range(3)]) for weights in tried]
    best = tried[np.argsort(results)[-4:]]
    mean, deviation = best.mean(axis=0), best.std(axis=0) + 0.05
print(f"pods placed of {len(PODS)}, mean of 10 orders that were not trained on:")
for name, policy in (("learned", linear(mean)), ("kube-scheduler", as_kube_scheduler), ("random", at_random)):
    print(f"{name:15} {np.mean([placed(policy, 500 + seed) for seed in range(10)]):.1f}")
