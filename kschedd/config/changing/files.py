"""What can be asked about a configuration file: is it right, what does it say, what does it come to in v1.

Answers are plain values, for methods of the socket and for the command line alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kschedd.config.changing.convert import converted
from kschedd.config.changing.upstream_only import upstream_only
from kschedd.config.changing.values import values
from kschedd.config.in_tree import Catalogue
from kschedd.config.loading.context import ReadFile
from kschedd.config.loading.load import default_config, load_config
from kschedd.config.model import Config
from kschedd.config.parsing.faults import ConfigError, ConfigErrors


def check(text: str, source: str, catalogue: Catalogue, read_file: ReadFile | None = None) -> dict[str, Any]:
    """`{release, errors, warnings}`; release is that whose defaults hold, null where there are errors."""
    try:
        config = load_config(text, source, catalogue=catalogue, read_file=read_file)
    except ConfigErrors as faults:
        return {"release": None, "errors": _plain(faults.errors), "warnings": _plain(faults.warnings)}
    return {"release": config.release, "errors": [], "warnings": _plain(config.warnings)}


def convert(
    text: str, source: str, catalogue: Catalogue, read_file: ReadFile | None = None, *, upstream: bool = False
) -> str:
    """The file as v1; with `upstream`, one that kube-scheduler itself takes.  Raises ConfigErrors."""
    config = load_config(text, source, catalogue=catalogue, read_file=read_file)
    return written_as_v1(config, catalogue, upstream=upstream)


def written_as_v1(config: Config, catalogue: Catalogue, *, upstream: bool = False) -> str:
    if upstream:
        config = upstream_only(config)
    default = default_config(catalogue=catalogue, version=config.version, feature_gates=config.feature_gates)
    return converted(config, default, catalogue)


def show(text: str, source: str, catalogue: Catalogue, read_file: ReadFile | None = None) -> list[dict[str, Any]]:
    """The values that the file comes to.  Raises ConfigErrors."""
    return listed(load_config(text, source, catalogue=catalogue, read_file=read_file))


def listed(config: Config) -> list[dict[str, Any]]:
    """`[{path, value, origin}]`: every value in force, and where it was said."""
    return [{"path": one.path, "value": one.value, "origin": one.origin} for one in values(config)]


def _plain(faults: Sequence[ConfigError]) -> list[Mapping[str, Any]]:
    return [
        {"file": one.file, "line": one.line, "path": one.path, "why": one.why, "allowed": one.allowed, "text": str(one)}
        for one in faults
    ]
