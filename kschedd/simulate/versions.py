"""A virtual cluster's scheduler by another version of Kubernetes, from the next attempt on."""

from kschedd.config.change_version import with_version
from kschedd.config.in_tree import IN_TREE
from kschedd.config.kube_versions import KubernetesVersion
from kschedd.config.model import Config
from kschedd.simulate.engine import Engine


def config_by(engine: Engine, config: Config, version: KubernetesVersion) -> Config:
    """The configuration as that version reads it, with the plugins there are. Raises ConfigErrors."""
    return with_version(config, version, {**IN_TREE, **engine.machine.registry.catalogue()})
