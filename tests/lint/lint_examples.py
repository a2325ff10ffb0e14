"""The examples of the rules of `kschedd lint` (examples.yaml), and the findings in them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

from kschedd.api.manifests import read_text
from kschedd.config.versions.kube_releases import Release
from kschedd.lint.catalogue.all import BY_CODE
from kschedd.lint.linting import NEWEST, OLDEST, LintResult, lint
from kschedd.lint.subjects import LintedObject

FILE = Path(__file__).with_name("examples.yaml")


@attrs.frozen
class LintExample:
    """A manifest in which the rule has a finding, and one without.

    `whole`: the manifests are all objects of a cluster.
    """

    code: str
    bad: str
    good: str
    whole: bool = False

    @property
    def releases(self) -> tuple[Release, Release | None]:
        """A release with a finding, or two between which an upgrade has one."""
        rule = BY_CODE[self.code]
        for minor in range(OLDEST.minor, NEWEST.minor + 1):
            if rule.era(Release(minor, 9)).level != "fine":
                return Release(minor, 9), None
        later = next(era.since for era in rule.eras if era.since is not None and era.since > OLDEST)
        return Release(later.minor - 1), later


def examples() -> list[LintExample]:
    read: Mapping[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return [LintExample(code, **entry) for code, entry in read.items()]


def manifest(text: str) -> str:
    """Return the objects of the text; a spec alone becomes a pod."""
    if "kind:" in text:
        return text
    if not text.startswith("{"):
        text = f"{{{text}}}"
    return f"{{kind: Pod, apiVersion: v1, metadata: {{name: p, labels: {{app: web}}}}, spec: {text}}}"


def linted(text: str, release: Release, target: Release | None = None, *, whole: bool = False) -> LintResult:
    reading = read_text(manifest(text), "example.yaml")
    assert not reading.errors, reading.errors
    objects = [LintedObject.of(each) for each in reading.manifests]
    return lint(objects, release, target=target, complete=whole)
