"""A virtual cluster's scheduler by another version of Kubernetes, from the next attempt on."""

from collections.abc import Mapping

from kschedd.config.changing.version import with_version
from kschedd.config.in_tree import IN_TREE
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import KubernetesVersion
from kschedd.simulate.engine import Engine


def config_by(
    engine: Engine, config: Config, version: KubernetesVersion, feature_gates: Mapping[str, bool] | None = None
) -> Config:
    """The configuration as that version reads it, with the plugins there are. Raises ConfigErrors."""
    return with_version(config, version, IN_TREE | engine.machine.registry.catalogue(), feature_gates)
