"""A configuration being loaded: its reader and release, the available plugins and gates, and the known origins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from kschedd.config.args import ArgsContext, default_args
from kschedd.config.in_tree import Catalogue
from kschedd.config.loading.releases import V1, ConfigRelease
from kschedd.config.parsing.reading import ConfigReader, ConfigValue
from kschedd.config.versions.kube_versions import KubernetesVersion
from kschedd.config.versions.rules import Rules
from kschedd.input_files import open_input

ReadFile = Callable[[str], str]
"""Returns the text of a file, given its path in the configuration.  Raises OSError or UnicodeDecodeError."""


def read_beside(source: str, *, pipes: bool = True) -> ReadFile:
    """Return a function that reads files, given absolutely or relative to `source`; named pipes require `pipes`."""

    def read(path: str) -> str:
        with open_input(Path(source).parent / path, pipes=pipes) as file:
            return file.read().decode("utf-8")

    return read


@attrs.define(eq=False)
class Loading:
    reading: ConfigReader
    catalogue: Catalogue
    version: KubernetesVersion
    gates: Mapping[str, bool]
    read_file: ReadFile
    release: ConfigRelease = V1
    origins: dict[str, str] = attrs.field(factory=dict)
    """The origin of each value in effect, as `Config.origins`."""
    rules: Rules = attrs.field(init=False)

    @rules.default
    def _rules(self) -> Rules:
        return self.version.rules.under(self.gates)

    @property
    def context(self) -> ArgsContext:
        return ArgsContext(self.gates, self.release.version)

    @property
    def release_name(self) -> str:
        """The release whose defaults apply; for a v1 file, the Kubernetes version in use."""
        return self.version.release if self.release is V1 else self.release.kube

    def implements(self, name: str) -> frozenset[str] | None:
        info = self.catalogue.get(name)
        return None if info is None else info.points_under(self.rules)

    def default_args(self, plugin: str) -> Any:
        return default_args(plugin, self.catalogue.get(plugin), self.context)

    def note(self, key: str, place: ConfigValue | None) -> None:
        """Record `place` as the origin of the value used for `key`."""
        if place is not None:
            self.note_path(key, place.path)

    def note_path(self, key: str, path: str) -> None:
        line = self.reading.line(path)
        self.origins[key] = f"{self.reading.source}:{line}" if line else self.reading.source


def default_args_of(plugin: str, catalogue: Catalogue, gates: Mapping[str, bool]) -> Any:
    """Return the arguments of a plugin in a v1 file without `pluginConfig`."""
    return default_args(plugin, catalogue.get(plugin), ArgsContext(gates))
