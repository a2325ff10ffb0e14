"""Tests of the Gymnasium environments."""

from typing import Any

import numpy as np
import pytest

from kschedd import node, pod

pytest.importorskip("gymnasium", reason="the extra gym is not installed")

from gymnasium.utils.env_checker import check_env

from kschedd.sdk.environment import KubeQueueEnv, KubeSchedulingEnv, Transition, balanced, packed, placed

NODES = [node("small", cpu="2"), node("large", cpu="8"), node("gpu", cpu="8", resources={"example.com/gpu": "1"})]
PODS = [pod("a", cpu="1"), pod("b", cpu="4"), pod("huge", cpu="64"), pod("c", resources={"example.com/gpu": "1"})]


@pytest.mark.parametrize("kind", [KubeSchedulingEnv, KubeQueueEnv])
def test_gymnasiums_checker_is_content(kind: Any) -> None:
    check_env(kind(NODES, PODS, shuffle=True), skip_render_check=True)


def test_the_mask_has_the_nodes_that_pass_the_filters() -> None:
    env = KubeSchedulingEnv(NODES, PODS)
    seen, info = env.reset(seed=1)
    assert env.resources == ("cpu", "memory", "example.com/gpu", "pods")
    assert seen["mask"].tolist() == [1, 1, 1]
    assert info["default_choice"] in (1, 2)
    seen, reward, over, _, info = env.step(0)
    assert (reward, over, info["placed"]) == (1.0, False, 1)
    assert seen["used"][0, 0] == 0.5
    assert seen["mask"].tolist() == [0, 1, 1]
    seen, reward, over, _, info = env.step(1)
    assert (seen["mask"].tolist(), info["skipped"]) == ([0, 0, 1], 1)  # the huge pod fits nowhere
    _, reward, over, _, info = env.step(2)
    assert (over, info["placed"], info["default_choice"]) == (True, 3, -1)


def test_a_choice_that_is_not_feasible_places_nothing() -> None:
    env = KubeSchedulingEnv(NODES, [pod("b", cpu="4"), pod("a")])
    env.reset()
    seen, reward, over, _, info = env.step(0)
    assert (reward, over, info["placed"], info["waiting"]) == (0.0, False, 0, 1)
    assert not seen["used"].any()


def test_a_fork_goes_its_own_way() -> None:
    env = KubeSchedulingEnv(NODES, PODS)
    env.reset()
    env.step(0)
    fork = env.fork()
    fork.step(1)
    assert fork.used()[1, 0] == 0.5
    assert env.used()[1, 0] == 0.0
    assert env.step(2)[4]["placed"] == 2


def test_pods_leave_when_their_lifetime_is_over() -> None:
    env = KubeSchedulingEnv(NODES[:1], [pod(f"p{number}", cpu="2") for number in range(3)], lifetimes=[1, 1, 1])
    seen, _ = env.reset()
    for _ in range(3):
        assert seen["mask"].tolist() == [1]
        seen, _, over, _, info = env.step(0)
    assert (over, info["placed"]) == (True, 3)


def test_equal_seeds_give_equal_orders() -> None:
    env = KubeSchedulingEnv(NODES, PODS * 3, shuffle=True)
    orders = []
    for seed in (5, 5, 6):
        seen, _ = env.reset(seed=seed)
        pods = [seen["pod"]]
        over = False
        while not over:
            seen, _, over, _, _ = env.step(int(seen["mask"].argmax()))
            pods.append(seen["pod"])
        orders.append(np.concatenate(pods).tolist())
    assert orders[0] == orders[1] != orders[2]


def test_rewards() -> None:
    used = np.array([[0.5, 0.25], [0.5, 0.75]], np.float32)
    step = Transition(None, 0, ("cpu", "memory"), used, used)  # type: ignore[arg-type]
    assert (placed(step), packed(step), balanced(step)) == (1.0, 0.375, -0.125)
    missed = Transition(None, None, ("cpu", "memory"), used, used)  # type: ignore[arg-type]
    assert (placed(missed), packed(missed), balanced(missed)) == (0.0, -1.0, -1.0)


def test_the_order_of_the_queue() -> None:
    env = KubeQueueEnv(NODES[:1], [pod("big", cpu="2"), pod("a", cpu="1"), pod("b", cpu="1")], window=2)
    seen, _ = env.reset()
    assert (seen["pods"].shape, seen["mask"].tolist()) == ((2, 3), [1, 1])
    env.step(1)
    _, _, over, _, info = env.step(1)
    assert not over
    seen, reward, over, _, info = env.step(0)
    assert (reward, over, info["placed"], info["skipped"]) == (0.0, True, 2, 1)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="at least one of each"):
        KubeSchedulingEnv([], PODS)
    with pytest.raises(ValueError, match="4 are required, one for each pod, not 1"):
        KubeSchedulingEnv(NODES, PODS, lifetimes=[1])
    with pytest.raises(Exception, match="reset"):
        KubeSchedulingEnv(NODES, PODS).step(0)
