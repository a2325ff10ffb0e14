"""Operations on a configuration file: validation, a list of its values, and conversion to v1.

Methods of the socket return the results, and the command line prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import attrs

from kschedd.config.changing.convert import converted
from kschedd.config.changing.upstream_only import upstream_only
from kschedd.config.changing.values import ConfiguredValue, values
from kschedd.config.in_tree import Catalogue
from kschedd.config.loading.context import ReadFile
from kschedd.config.loading.load import default_config, load_config
from kschedd.config.model import Config
from kschedd.config.parsing.faults import ConfigError, ConfigErrors
from kschedd.config.versions.kube_versions import DEFAULT, KubernetesVersion, UnknownVersionError, kube_version


@attrs.frozen
class ConfigFaultAnswer:
    file: str
    line: int
    path: str
    why: str
    allowed: str
    text: str


@attrs.frozen
class CheckedConfig:
    release: Annotated[str | None, "release whose defaults apply, null if there are errors"]
    errors: Sequence[ConfigFaultAnswer]
    warnings: Sequence[ConfigFaultAnswer]


def check(
    text: str,
    source: str,
    catalogue: Catalogue,
    read_file: ReadFile | None = None,
    version: KubernetesVersion = DEFAULT,
) -> CheckedConfig:
    try:
        config = load_config(text, source, catalogue=catalogue, version=version, read_file=read_file)
    except ConfigErrors as faults:
        return CheckedConfig(None, _answers(faults.errors), _answers(faults.warnings))
    return CheckedConfig(config.release, [], _answers(config.warnings))


def convert(
    text: str, source: str, catalogue: Catalogue, read_file: ReadFile | None = None, *, upstream: bool = False
) -> str:
    """Return the file as v1; with `upstream`, in a form that kube-scheduler accepts.  Raises ConfigErrors."""
    config = load_config(text, source, catalogue=catalogue, read_file=read_file)
    return written_as_v1(config, catalogue, upstream=upstream)


def written_as_v1(config: Config, catalogue: Catalogue, *, upstream: bool = False) -> str:
    if upstream:
        config = upstream_only(config)
    default = default_config(catalogue=catalogue, version=config.version, feature_gates=config.feature_gates)
    return converted(config, default, catalogue)


def show(
    text: str,
    source: str,
    catalogue: Catalogue,
    read_file: ReadFile | None = None,
    version: KubernetesVersion = DEFAULT,
) -> list[ConfiguredValue]:
    """Return the values that the file sets, including defaults of the version.  Raises ConfigErrors."""
    return list(values(load_config(text, source, catalogue=catalogue, version=version, read_file=read_file)))


def version_named(text: str, *, upgraded: bool = False) -> KubernetesVersion:
    """Return the version with this name; "": the default version. Raises UnknownVersionError.

    `upgraded`: the file is checked for an upgrade from this version, which may be older than the supported versions.
    """
    if not text:
        return DEFAULT
    try:
        return kube_version(text)
    except UnknownVersionError:
        if upgraded:
            return DEFAULT
        raise


def _answers(faults: Sequence[ConfigError]) -> list[ConfigFaultAnswer]:
    return [ConfigFaultAnswer(one.file, one.line, one.path, one.why, one.allowed, str(one)) for one in faults]
