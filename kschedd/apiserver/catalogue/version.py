"""Which release of Kubernetes the face passes for: clients choose what they ask by it."""

from typing import Any, Final, Self

import attrs

from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import DEFAULT


@attrs.frozen
class ServedVersion:
    """The very release, and the names of those of its rules that hold: some fields are there by them."""

    patch: str = DEFAULT.patch
    rules: frozenset[str] = DEFAULT.default_rules.features

    @classmethod
    def of(cls, config: Config) -> Self:
        return cls(config.version.patch, config.rules.features)

    @property
    def minor(self) -> int:
        return int(self.patch.split(".")[1])

    @property
    def git_version(self) -> str:
        return f"v{self.patch}"

    def document(self, own: str) -> dict[str, Any]:
        """`/version`; `own` is our own version, told where upstream names its commit."""
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
