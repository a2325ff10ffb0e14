"""Which release of Kubernetes the face passes for: clients choose what they ask by it."""

from typing import Any, Final

GIT_VERSION: Final = "v1.34.9"


def version_document(own: str) -> dict[str, Any]:
    """`/version`; `own` is our own version, told where upstream names its commit."""
    return {
        "major": "1",
        "minor": "34",
        "emulationMajor": "1",
        "emulationMinor": "34",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "33",
        "gitVersion": GIT_VERSION,
        "gitCommit": f"kschedd-{own}",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "linux/any",
    }
