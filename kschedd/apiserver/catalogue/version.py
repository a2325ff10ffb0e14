"""The Kubernetes release that the REST API reports, to which clients adapt their requests."""

from typing import Any, Final, Self

import attrs

from kschedd.apiserver.catalogue.descriptions import Descriptions
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import DEFAULT

_NONE: Final[Descriptions] = {}


@attrs.frozen
class ServedVersion:
    """The exact release, and its active rules, on which some fields depend."""

    patch: str = DEFAULT.patch
    rules: frozenset[str] = DEFAULT.default_rules.features
    descriptions: Descriptions = attrs.field(factory=dict, eq=False)  # of types and fields

    @classmethod
    def of(cls, config: Config, descriptions: Descriptions = _NONE) -> Self:
        return cls(config.version.patch, config.rules.features, descriptions)

    @property
    def minor(self) -> int:
        return int(self.patch.split(".")[1])

    @property
    def git_version(self) -> str:
        return f"v{self.patch}"

    def document(self, own: str) -> dict[str, Any]:
        """Return `/version`; `own` is kschedd's version, which replaces upstream's commit."""
        major, minor, *_ = self.patch.split(".")
        return {
            "major": major,
            "minor": minor,
            "emulationMajor": major,
            "emulationMinor": minor,
            "minCompatibilityMajor": major,
            "minCompatibilityMinor": str(int(minor) - 1),
            "gitVersion": self.git_version,
            "gitCommit": f"kschedd-{own}",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "none",
            "compiler": "none",
            "platform": "linux/any",
        }


OF_DEFAULT: Final = ServedVersion()
