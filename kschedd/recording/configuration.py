"""The configuration in a recording: a KubeSchedulerConfiguration without TLS keys."""

import attrs

from kschedd.config.changing.files import written_as_v1
from kschedd.config.in_tree import IN_TREE, Catalogue
from kschedd.config.loading.load import load_config
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import KubernetesVersion


def text_of(config: Config, catalogue: Catalogue = IN_TREE) -> str:
    """Return the configuration as text, without the settings that flags control."""
    extenders = tuple(attrs.evolve(one, tls=None, enable_https=False) for one in config.extenders)
    return written_as_v1(attrs.evolve(config, extenders=extenders), catalogue)


def config_of(
    text: str, catalogue: Catalogue, version: KubernetesVersion, gates: dict[str, bool], flush_s: int
) -> Config:
    """Return the configuration in a recording. Raises ConfigErrors."""
    config = load_config(text, "recording", catalogue=catalogue, version=version, feature_gates=gates)
    return attrs.evolve(config, unschedulable_flush_s=flush_s)
