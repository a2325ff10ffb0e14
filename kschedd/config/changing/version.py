"""A configuration as another version of Kubernetes would read it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kschedd.config.changing.files import written_as_v1
from kschedd.config.in_tree import IN_TREE, Catalogue
from kschedd.config.loading.load import load_config
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import KubernetesVersion


def with_version(
    config: Config,
    version: KubernetesVersion,
    catalogue: Catalogue = IN_TREE,
    feature_gates: Mapping[str, bool] | None = None,
) -> Config:
    """What it says, with the defaults of the version for what it leaves out. Raises ConfigErrors.

    Feature gates that are not as by default stay so, unless the version lacks them or has locked them; those in
    `feature_gates` are as said there.
    """
    before = config.version.gates
    gates = {
        name: state
        for name, state in config.feature_gates.items()
        if state != before[name].default and name in version.gates and not version.gates[name].locked
    }
    gates.update(feature_gates or {})
    text = written_as_v1(config, catalogue)
    new = load_config(text, version.release, catalogue=catalogue, version=version, feature_gates=gates)
    return attrs.evolve(new, unschedulable_flush_s=config.unschedulable_flush_s)
