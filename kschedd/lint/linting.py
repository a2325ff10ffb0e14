"""A run of `kschedd lint`: all rules on all objects, without the findings that a comment ignores."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from os.path import dirname
from typing import Final

import attrs

from kschedd.config.versions.kube_releases import Release
from kschedd.errors import KscheddError
from kschedd.lint.catalogue.all import BY_CODE, BY_KIND
from kschedd.lint.catalogue.texts import SCRIPT
from kschedd.lint.kept import OLD_CLUSTERS, is_named_for
from kschedd.lint.rules import ALL, LEVELS, NEWEST, OLDEST, PODS, Hit, Level, LintFinding, LintRule, sentence
from kschedd.lint.subjects import KnownObjects, LintedObject, PodPart

_RELEASE: Final = re.compile(r"v?1\.(\d{1,3})(?:\.(\d{1,3}))?")
_IGNORE: Final = re.compile(r"#.*?\bkschedd:\s*ignore=([\w,-]+)")


@attrs.define(eq=False)
class LintReleaseError(KscheddError, rpc_code="invalid"):
    """Lint does not support this release."""

    text: str

    def __str__(self) -> str:
        return f"invalid release {self.text!r}: allowed are {OLDEST} to {NEWEST}, such as 1.37 or 1.36.3"


def release_of(text: str) -> Release:
    """Return the release for text such as `1.37` or `v1.36.3`. Raises LintReleaseError."""
    match = _RELEASE.fullmatch(text)
    if match is None or not OLDEST.minor <= int(match[1]) <= NEWEST.minor:
        raise LintReleaseError(text)
    return Release(int(match[1]), int(match[2] or 0))


@attrs.frozen
class LintResult:
    """The findings, in the order of the objects.

    `scripts`: the number of files that contain no objects. `ignored`: the number of findings that comments or flags
    ignore. `kept`: files with objects that were skipped because they are for other clusters, each with the reason.
    """

    release: Release
    target: Release | None
    objects: int
    scripts: int
    findings: Sequence[LintFinding]
    ignored: int
    faults: Sequence[str] = ()
    kept: Mapping[str, str] = attrs.field(factory=dict)

    def count(self, level: Level) -> int:
        return sum(finding.level == level for finding in self.findings)

    def at_least(self, level: Level) -> "LintResult":
        """Return the result without the findings below this level."""
        most = LEVELS.index(level)
        return attrs.evolve(self, findings=[each for each in self.findings if LEVELS.index(each.level) <= most])

    @property
    def passes(self) -> bool:
        """True without errors and warnings."""
        return all(finding.level == "note" for finding in self.findings)


def lint(
    objects: Sequence[LintedObject],
    release: Release,
    *,
    target: Release | None = None,
    beside: Sequence[LintedObject] = (),
    complete: bool = False,
    ignored: Collection[str] = (),
    all_files: bool = False,
) -> LintResult:
    """Return the findings of all rules in the objects.

    `target`: the release to which the cluster is upgraded; differences between the releases are findings as well.
    `beside`: other objects of the cluster, which rules may look up but do not check. `complete`: the objects and
    `beside` are a whole cluster; otherwise, the objects in a folder belong together, and nodes belong only to the
    objects in their own file. `all_files`: objects of a removed version are also checked if the name of their file
    contains this version.
    """
    findings: list[LintFinding] = []
    faults: list[str] = []
    kept: dict[str, str] = {}
    skipped = 0
    for cluster in [list(objects)] if complete else _clusters(objects):
        known = KnownObjects([*cluster, *beside], complete=complete)
        for each in cluster:
            if known.is_made(each):
                continue
            of_object = list(_findings(each, known, release, target, faults))
            if not all_files and _is_for_old_clusters(each, of_object):
                kept[each.source] = OLD_CLUSTERS
                continue
            for found in of_object:
                if found.rule.code in ignored or found.rule.code in _ignored_by_comment(found, known):
                    skipped += 1
                else:
                    findings.append(found)
    scripts = sum(each.kind == SCRIPT for each in objects)
    return LintResult(release, target, len(objects) - scripts, scripts, findings, skipped, faults, kept)


def _is_for_old_clusters(each: LintedObject, findings: Sequence[LintFinding]) -> bool:
    """Return whether the object's version is removed or deprecated, and its file's name contains this version."""
    is_old = any(found.object is each and found.path == ("apiVersion",) for found in findings)
    return is_old and each.below is not None and is_named_for(each.below, each.api_version, each.kind)


def _findings(
    each: LintedObject, known: KnownObjects, release: Release, target: Release | None, faults: list[str]
) -> Iterator[LintFinding]:
    """Yield the findings of all rules in an object.

    If a rule fails, its error is reported, and the other rules still run.
    """
    for rule, subject in _subjects(each):
        try:
            hits = rule.hits(subject, known)
        except Exception as fault:  # an error of a rule, for an object that the rule does not expect
            faults.append(f"{each.source}: {each.shown}: the rule {rule.code} failed: {fault!r}")
            continue
        for hit in hits:
            found = _finding(rule, each, hit, release, target)
            if found is not None:
                yield found


def _clusters(objects: Sequence[LintedObject]) -> list[list[LintedObject]]:
    """Return the objects of each file with nodes, and the other objects of each folder, which may be unrelated."""
    with_nodes = {each.source for each in objects if each.kind == "Node"}
    clusters: dict[str, list[LintedObject]] = {}
    for each in objects:
        place = each.source if each.source in with_nodes else f"{dirname(each.source)}/"
        clusters.setdefault(place, []).append(each)
    return list(clusters.values())


def _subjects(each: LintedObject) -> Iterator[tuple[LintRule, LintedObject | PodPart]]:
    for rule in (*BY_KIND.get(each.kind, ()), *BY_KIND[ALL]):
        yield rule, each
    if each.pod is not None:
        for rule in BY_KIND[PODS]:
            if rule.applies_to(each.pod):
                yield rule, each.pod


def _finding(
    rule: LintRule, each: LintedObject, hit: Hit, release: Release, target: Release | None
) -> LintFinding | None:
    """Return the finding for a hit; None if there is no finding in either release."""
    now = rule.era(release)
    later = now if target is None else rule.era(target)
    if now.level == "fine" and later is now:
        return None
    level = min(now.level, later.level, key=LEVELS.index)
    if level == "fine":
        level = "note"  # the upgrade changes the behavior
    message = sentence(rule, hit, release, target)
    return LintFinding(rule, hit.object or each, hit.path, level, message, hit.fix or rule.fix)


def _ignored_by_comment(finding: LintFinding, known: KnownObjects) -> frozenset[str]:
    """Return the codes in ignore comments: on the line of the finding or above it, or before the object's fields."""
    found = finding.object
    # Many objects in a list share one text.
    lines = known.once(f"lines of {id(found.text)}", lambda: found.text.split("\n") if "kschedd:" in found.text else [])
    if not lines:
        return frozenset()
    place = finding.line - found.first_line
    codes = {code for line in _head(lines) for code in _codes(line)}
    if 0 <= place < len(lines):
        codes |= _codes(lines[place])
        above = place - 1
        while above >= 0 and lines[above].lstrip().startswith("#"):
            codes |= _codes(lines[above])
            above -= 1
    return frozenset(codes)


def _head(lines: Iterable[str]) -> Iterator[str]:
    """Yield the comment lines before the first field of the object."""
    for line in lines:
        text = line.strip()
        if text.startswith("#"):
            yield line
        elif text and text != "---":
            return


def _codes(line: str) -> set[str]:
    return {code for match in _IGNORE.finditer(line) for code in match[1].split(",") if code}


def unknown_codes(codes: Iterable[str]) -> list[str]:
    """Return the codes that belong to no rule."""
    return [code for code in codes if code not in BY_CODE]
