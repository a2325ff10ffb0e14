"""The upgrade of a scheduler configuration: warnings that `config check --upgrade-to` adds about a file."""

from kschedd.api.manifests import read_text
from kschedd.config.changing.files import ConfigFaultAnswer
from kschedd.config.versions.kube_versions import DEFAULT
from kschedd.lint.linting import lint, release_of
from kschedd.lint.subjects import LintedObject


def upgrade_warnings(text: str, source: str, upgrade_to: str, kube_version: str = "") -> list[ConfigFaultAnswer]:
    """Return warnings about what the release ignores or rejects in the file, and about what the upgrade changes.

    `kube_version`: the release that uses the file at present; "" for the default. Raises LintReleaseError.
    """
    release, target = release_of(kube_version or DEFAULT.name), release_of(upgrade_to)
    objects = [LintedObject.of(manifest) for manifest in read_text(text, source).manifests]
    return [
        ConfigFaultAnswer(
            source,
            found.line,
            found.field,
            found.message,
            found.fix,
            f"{source}:{found.line}: {found.field}: {found.message}. {found.fix}",
        )
        for found in lint(objects, release, target=target).findings
    ]
