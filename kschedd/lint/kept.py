"""Files that a repository keeps beside its current ones.

Files that are not current are archives, older versions, files for old clusters, tests, and files of builds or
dependencies.

Only names below a given folder are examined: a file that the user names is always linted.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Final

import attrs

from kschedd.api.manifests import SUFFIXES
from kschedd.config.versions.kube_releases import Release
from kschedd.lint.rules import OLDEST

ARCHIVED: Final = "in archives"
OLDER: Final = "of older versions"
OLD_CLUSTERS: Final = "for old clusters"
TESTS: Final = "of tests"
COPIES: Final = "of builds or dependencies"

_ARCHIVES: Final = frozenset(("archive", "archived", "archives", "attic", "deprecated", "legacy", "obsolete", "old"))
_ARCHIVED_END: Final = re.compile(r".*[-_.](archived|deprecated|legacy|obsolete|old)")
_TESTS: Final = frozenset(("test", "tests", "testing", "e2e", "testdata", "fixtures"))
_TEST_FILE: Final = re.compile(r"test_.*\.py|.*_test\.(py|go)")
_COPIES: Final = frozenset(("_site", "node_modules", "site-packages", "vendor"))
_POLICIES: Final = frozenset(("psp", "podsecuritypolicy", "podsecuritypolicies"))
_VERSION: Final = re.compile(r"(.*?)(v?)(\d+(?:[._]\d+)+)(?:[-_.]?(alpha|beta|rc)[-_.]?(\d*))?(.*)")
_OF_KUBERNETES: Final = re.compile(r"(.*[-_.])?(kubernetes|k8s|kube)[-_.]?")
_WORDS: Final = re.compile(r"(release|version)?[-_.]?")
# Texts by which a file pins the release of its cluster: a field, packages, a flag, a variable, an image of kind.
_PINS: Final = re.compile(
    rb"(?:kubernetesVersion:\s*|--kubernetes-version[= ]|kube(?:adm|let)[-=]|kindest/node:"
    rb"|(?:KUBERNETES|KUBE|K8S)_VERSION\s*[:=]\s*)[\"']?v?1\.(\d{1,2})\b"
)
_PINNING: Final = (*SUFFIXES, ".sh", ".bash", ".tf")
_PLUS: Final = ("+", "-plus", "-and-later")
_AND_LATER: Final = re.compile(r"(.+?)[-_.]v?1\.(\d{1,2})(?:\+|-plus|-and-later)")
_FINAL: Final = ("~",)  # after each pre-release
_Version = tuple[tuple[int, ...], tuple[str | int, ...]]


@attrs.frozen
class _Series:
    """The names that differ only in their versions."""

    folder: PurePath
    before: str
    after: str

    @property
    def of_kubernetes(self) -> bool:
        return _OF_KUBERNETES.fullmatch(self.before) is not None


class KeptFiles:
    """The files below one folder: which of them are not current, and why."""

    def __init__(self, files: Sequence[PurePath], release: Release) -> None:
        """Compare the names of all files.

        `files`: the paths of the files below the folder. `release`: the release of the cluster.
        """
        self._release = release
        self._versions: dict[_Series, set[_Version]] = {}
        self._replaced: set[PurePath] = set()  # `web` beside `web-1.21+`
        leaves = set(files)
        for path in {path for file in files for path in _names(file)}:
            if (later := _AND_LATER.fullmatch(path.name)) and int(later[2]) <= release.minor:
                self._replaced.add(path.with_name(later[1]))
            if named := _version(path, is_file=path in leaves):
                series, version = named
                self._versions.setdefault(series, set()).add(version)

    def reason(self, file: PurePath) -> str:
        """Return the reason why the file is not current; "" if it is a current file."""
        for path in _names(file):
            name = path.name if path != file else path.stem
            if _ARCHIVED_END.fullmatch(name.lower()) or (path != file and name.lower().strip("._-") in _ARCHIVES):
                return ARCHIVED
            if path in self._replaced:
                return OLD_CLUSTERS
            if path != file and name.lower() in _COPIES:
                return COPIES
            if (name.lower().strip("_") in _TESTS) if path != file else _TEST_FILE.fullmatch(file.name.lower()):
                return TESTS
            if (named := _version(path, is_file=path == file)) and self._is_older(*named):
                return OLDER
        return ""

    def _is_older(self, series: _Series, version: _Version) -> bool:
        """Return whether a newer version of the file exists, or whether it is for a release that lint does not know."""
        newer = {each for each in self._versions[series] if each > version}
        number, _ = version
        if series.of_kubernetes or (number[0] == 1 and len(number) == 2):
            # A file for a newer release than the cluster's does not replace this file.
            newer = {each for each in newer if each[0] <= (1, self._release.minor, 99)}
        too_old = number < (1, OLDEST.minor) and not series.after.startswith(_PLUS)
        return bool(newer) or (series.of_kubernetes and too_old)


def pinned_release(file: PurePath, data: bytes) -> int | None:
    """Return the newest minor release of Kubernetes that the file pins for its cluster; None if it pins none."""
    if file.suffix not in _PINNING:
        return None
    return max((int(match[1]) for match in _PINS.finditer(data)), default=None)


def is_named_for(file: PurePath, api_version: str, kind: str) -> bool:
    """Return whether the name of the file or of a folder contains this version of an API, as in `crds-v1beta1/`.

    For a PodSecurityPolicy, which has no later version, the name of the kind is searched instead.
    """
    _, _, version = api_version.rpartition("/")
    words = {word for part in file.parts for word in re.split(r"[^a-z0-9]+", part.lower())}
    return version in words or (kind == "PodSecurityPolicy" and not words.isdisjoint(_POLICIES))


def _names(file: PurePath) -> Iterator[PurePath]:
    """Yield the folders in a path from the top, and then the path itself."""
    yield from list(file.parents)[-2::-1]
    yield file


def _version(path: PurePath, *, is_file: bool) -> tuple[_Series, _Version] | None:
    """Return the version in a name, and the names with which it is compared; None without a version."""
    match = _VERSION.fullmatch((path.stem if is_file else path.name).lower())
    if match is None:
        return None
    series = _Series(path.parent, match[1], match[6])
    # `postgres-13.1` and `postgres-14.2` may be in use at the same time, but `v2.1` and `v2.2` are versions of one
    # thing.
    if not (series.of_kubernetes or match[2] or (_WORDS.fullmatch(match[1]) and not is_file)):
        return None
    pre_release = (match[4], int(match[5] or 0)) if match[4] else _FINAL
    return series, (tuple(map(int, re.split("[._]", match[3]))), pre_release)
