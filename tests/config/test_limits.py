"""Tests of `timeoutSeconds` of out-of-tree plugins: where it may be set, and its effect."""

from typing import Any

import pytest

from kschedd.config.changing.changes import with_weight
from kschedd.config.changing.convert import as_v1
from kschedd.config.in_tree import IN_TREE, Catalogue
from kschedd.config.loading.limits import limits_of
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.model import Config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.framework.registry import Registry


class Slow:
    name = "Slow"

    def filter(self, state: Any, pod: Any, node: Any) -> None: ...

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1

    def bind(self, state: Any, pod: Any, node_name: str) -> None: ...


CATALOGUE: Catalogue = {**IN_TREE, **Registry({"Slow": Slow}).catalogue()}


def configured(**plugins: Any) -> Config:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {point: {"enabled": answer} for point, answer in plugins.items()}}],
    }
    return config_from_raw(raw, catalogue=CATALOGUE)


def limits(config: Config) -> dict[str, float]:
    return dict(limits_of(config.profiles[0], "Slow"))


def test_said_at_multipoint_it_holds_at_every_point_and_said_at_one_it_holds_there() -> None:
    config = configured(
        multiPoint=[{"name": "Slow", "timeoutSeconds": 10}], bind=[{"name": "Slow", "timeoutSeconds": 60.5}]
    )
    assert limits(config) == {"filter": 10.0, "score": 10.0, "bind": 60.5}


def test_where_nothing_is_said_there_is_none() -> None:
    assert limits(configured(multiPoint=[{"name": "Slow"}])) == {}


@pytest.mark.parametrize("seconds", [0, -1, 3601, "5s", True, [5]])
def test_what_is_no_limit_is_refused(seconds: Any) -> None:
    with pytest.raises(ConfigErrors, match=r"timeoutSeconds.*not a time limit"):
        configured(filter=[{"name": "Slow", "timeoutSeconds": seconds}])


def test_an_in_tree_plugin_has_none_and_that_is_said() -> None:
    config = configured(filter=[{"name": "NodeName", "timeoutSeconds": 1}])
    assert any("only out-of-tree plugins have limits" in str(warning) for warning in config.warnings)


def test_other_changes_and_conversion_keep_it() -> None:
    config = configured(multiPoint=[{"name": "Slow", "timeoutSeconds": 10}])
    config = with_weight(config, "default-scheduler", "Slow", 7)
    assert limits(config)["score"] == 10.0
    again = config_from_raw(as_v1(config, default_config(), CATALOGUE), catalogue=CATALOGUE)
    assert limits(again) == limits(config)
