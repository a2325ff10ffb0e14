"""The scheduler's configuration for a workload: its configuration file, and the feature gates of case and workload.

A gate that this scheduler does not have, or that can no longer be changed, has no effect; that is noted.
Raises: PerfConfigError.
"""

from pathlib import Path

from kschedd.bench.scheduler_perf.cases import PerfCase, PerfConfigError, PerfWorkload
from kschedd.bench.scheduler_perf.templates import TemplateFolder, read_text
from kschedd.config.loading.load import default_config, load_config
from kschedd.config.model import Config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.versions.feature_gates import defaults
from kschedd.config.versions.kube_versions import KubernetesVersion


def configuration(
    case: PerfCase, workload: PerfWorkload, source: Path, version: KubernetesVersion
) -> tuple[Config, list[str]]:
    """The configuration, and notes on what of it has no effect."""
    known = version.gates
    gates, notes = {}, []
    for name, state in {**case.feature_gates, **workload.feature_gates}.items():
        gate = known.get(name)
        if gate is None:
            notes.append(f"feature gate {name}: there is none in {version.name}; it has no effect")
        elif gate.locked and state != gate.default:
            notes.append(f"feature gate {name}: it cannot be {str(state).lower()} in {version.name}; it has no effect")
        elif not gate.what and state != defaults(known)[name]:
            notes.append(f"feature gate {name}: nothing here depends on it")
        else:
            gates[name] = state
    try:
        if not case.scheduler_config_path:
            return default_config(version=version, feature_gates=gates), notes
        path = TemplateFolder(source).path(case.scheduler_config_path)
        return load_config(read_text(path), str(path), version=version, feature_gates=gates), notes
    except ConfigErrors as wrong:
        raise PerfConfigError(tuple(str(wrong).splitlines())) from None
