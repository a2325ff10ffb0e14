"""Rules of `kschedd lint`: what they look for, and what each release does with it.

A rule looks at the objects of some kinds, or at the pod of each workload (`PODS`), and returns its hits: paths in the
object. Its eras tell what happens from which release on. A rule has a finding in a release if the era of that release
has a level, and in an upgrade also if the two releases lie in different eras.
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
    """The releases from `since` on (None: all) up to the next era. `says`: a clause about what happens in them."""

    since: Release | None
    level: Level
    says: str


@attrs.frozen
class Hit:
    """A place that a rule has found: `path` within the object; `what` replaces `{}` in the rule's sentences."""

    path: Steps
    what: str = ""
    object: LintedObject | None = None  # if it is another one than the object that was looked at


Check = Callable[[Any, KnownObjects], Iterable[Hit]]


@attrs.frozen(eq=False)
class LintRule:
    """One rule; see the module. `fix`: what to do, as a sentence. `source`: where the facts come from.

    `fields`: the fields of a pod's spec that the rule looks at; without any of them it finds nothing. ``()``: others.
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
        """Return whether the pod has a field that the rule looks at."""
        return not self.fields or any(field in pod.spec for field in self.fields)

    def hits(self, subject: "LintedObject | PodPart", known: KnownObjects) -> list[Hit]:
        """Return what the rule finds in an object, or in its pod."""
        found = list(self.check(subject, known))
        if isinstance(subject, PodPart):
            return [hit if hit.object else attrs.evolve(hit, path=(*subject.path, *hit.path)) for hit in found]
        return found


@attrs.define
class RuleSet:
    """Rules as they are declared in one module."""

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
        """Declare a rule, whose check is the decorated function.

        `eras`: release ("" for all), level and clause. `source`: an issue of Kubernetes, or where its code has it.
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
    """What a rule has found in an object."""

    rule: LintRule
    object: LintedObject
    path: Steps
    level: Level
    message: str

    @property
    def field(self) -> str:
        """The path of the field as text, such as `spec.template.spec.tolerations[0]`."""
        return path_text(self.path)

    @property
    def line(self) -> int:
        """The line in the source; 0 if the source has no lines."""
        return self.object.line_of(self.field)


def sentence(rule: LintRule, hit: Hit, release: Release, target: Release | None) -> str:
    """Return what happens in the release, and in the `target` of an upgrade or the next era."""
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
