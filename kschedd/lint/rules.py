"""Rules of `kschedd lint`: what each rule checks, and the behavior in each release.

A rule checks the objects of some kinds, or the pod of each workload (`PODS`), and returns its hits: paths in the
object. Each era of a rule describes how Kubernetes behaves from a release until the next era begins. A rule has
findings in a release if the rule's era for this release has a level. In an upgrade, it also has a finding if the two
releases are in different eras.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import attrs

from kschedd.api.schemas.fields import path_text
from kschedd.config.versions.kube_releases import Release
from kschedd.lint.subjects import KnownObjects, LintedObject, PodPart, Steps

Level = Literal["error", "warning", "note", "fine"]
"""`error`: the object is rejected, or its pods never run. `warning`: it does something else than it seems to.
`note`: advice. `fine`: the release does what the object says; only an upgrade to or from it is worth a word."""

LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "note", "fine")
OLDEST: Final = Release(29)
NEWEST: Final = Release(38)
PODS: Final = "the pods of all kinds"
ALL: Final = "all kinds"


@attrs.frozen
class Era:
    """The releases from `since` on (None: all) up to the next era.

    `says`: a clause about the behavior in these releases.
    """

    since: Release | None
    level: Level
    says: str


@attrs.frozen
class Hit:
    """A place at which a rule has a finding: `path` within the object; `what` replaces `{}` in the rule's sentences."""

    path: Steps
    what: str = ""
    object: LintedObject | None = None  # the object of the finding if it is not the checked object
    fix: str = ""  # advice for this place, in place of the rule's


Check = Callable[[Any, KnownObjects], Iterable[Hit]]


@attrs.frozen(eq=False)
class LintRule:
    """A rule of `kschedd lint`. `fix`: a sentence that tells the user what to do. `source`: the source of the facts.

    `fields`: the fields of a pod's spec that the rule checks; it has no findings in a pod without these fields. ``()``:
    others.
    """

    code: str
    kinds: tuple[str, ...]
    eras: tuple[Era, ...]
    fix: str
    source: str
    check: Check
    fields: tuple[str, ...] = ()

    def era(self, release: Release) -> Era:
        """Return the era of this release."""
        begun = [era for era in self.eras if era.since is None or era.since <= release]
        return begun[-1] if begun else self.eras[0]

    def after(self, era: Era) -> Era | None:
        """Return the era that follows this one."""
        place = self.eras.index(era) + 1
        return self.eras[place] if place < len(self.eras) else None

    @property
    def level(self) -> Level:
        """The most serious level of any era."""
        return min((era.level for era in self.eras), key=LEVELS.index)

    def applies_to(self, pod: PodPart) -> bool:
        """Return whether the pod has a field that the rule checks."""
        return not self.fields or any(field in pod.spec for field in self.fields)

    def hits(self, subject: "LintedObject | PodPart", known: KnownObjects) -> list[Hit]:
        """Return the hits of the rule in an object, or in the object's pod."""
        found = list(self.check(subject, known))
        if isinstance(subject, PodPart):
            return [hit if hit.object else attrs.evolve(hit, path=(*subject.path, *hit.path)) for hit in found]
        return found


@attrs.define
class RuleSet:
    """The rules that one module declares."""

    rules: list[LintRule] = attrs.field(factory=list)

    def add(
        self,
        code: str,
        kinds: str | Sequence[str],
        *eras: tuple[str, Level, str],
        fix: str,
        source: str = "",
        fields: str | tuple[str, ...] = (),
    ) -> Callable[[Check], Check]:
        """Return a decorator that declares the check of a rule.

        `eras`: release ("" for all), level and clause. `source`: an issue of Kubernetes, or a place in its code.
        """

        def declare(check: Check) -> Check:
            known = tuple(Era(Release.of(since) if since else None, level, says) for since, level, says in eras)
            of = (kinds,) if isinstance(kinds, str) else tuple(kinds)
            within = (fields,) if isinstance(fields, str) else fields
            self.rules.append(LintRule(code, of, known, fix, source, check, within))
            return check

        return declare


@attrs.frozen(eq=False)
class LintFinding:
    """A finding of a rule in an object."""

    rule: LintRule
    object: LintedObject
    path: Steps
    level: Level
    message: str
    fix: str

    @property
    def field(self) -> str:
        """The path of the field as text, such as `spec.template.spec.tolerations[0]`."""
        return path_text(self.path)

    @property
    def line(self) -> int:
        """The line in the source; 0 if the source has no lines."""
        return self.object.line_of(self.field)


def sentence(rule: LintRule, hit: Hit, release: Release, target: Release | None) -> str:
    """Return the behavior in the release, and in the `target` of an upgrade or in the next era."""
    now = rule.era(release)
    later = rule.era(target) if target is not None and target != release else None
    if len(rule.eras) == 1:
        text = now.says
    elif later is not None and later is not now:
        text = f"in {release}, {now.says}; in {target}, {later.says}"
    elif (following := rule.after(now)) is not None:
        text = f"in {release}, {now.says}; from {following.since} on, {following.says}"
    else:
        text = f"in {release}, {now.says}"
    return text.replace("{}", hit.what)
