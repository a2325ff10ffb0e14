"""Files that a repository keeps beside its current ones: archives, older versions, files for old clusters, test data.

Only names below a folder that the user names count: a file that is named itself is always linted.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Final

from kschedd.config.versions.kube_releases import Release
from kschedd.lint.rules import OLDEST

ARCHIVED: Final = "in archives"
OLDER: Final = "of older versions"
OLD_CLUSTERS: Final = "for old clusters"
TEST_DATA: Final = "of test data"

_ARCHIVES: Final = frozenset(("archive", "archived", "archives", "attic", "deprecated", "legacy", "obsolete", "old"))
_ARCHIVED_END: Final = re.compile(r".*[-_.](archived|deprecated|legacy|obsolete|old)")
_TEST_DATA: Final = frozenset(("testdata", "fixtures"))
_VERSION: Final = re.compile(r"(.*?)v?(\d+(?:\.\d+)+)(.*)")
_OF_KUBERNETES: Final = re.compile(r"(.*[-_.])?(kubernetes|k8s|kube)[-_.]?")
_WORDS: Final = re.compile(r"(release|version)?[-_.]?")
_AND_LATER: Final = ("+", "-plus", "-and-later")
_Siblings = dict[tuple[PurePath, str, str], set[tuple[int, ...]]]


class KeptFiles:
    """The files below one folder: which of them are kept beside the current ones, and why."""

    def __init__(self, files: Sequence[PurePath], release: Release) -> None:
        """Compare the names of all files. `files`: their paths below the folder. `release`: that of the cluster."""
        self._release = release
        self._siblings: _Siblings = {}
        leaves = set(files)
        for path in {path for file in files for path in _names(file)}:
            if version := _version(path, is_file=path in leaves):
                key, number = version
                self._siblings.setdefault(key, set()).add(number)

    def reason(self, file: PurePath) -> str:
        """Return why the file is kept; "" if it is a current one."""
        for path in _names(file):
            name = path.name if path != file else path.stem
            if _ARCHIVED_END.fullmatch(name.lower()) or (path != file and name.lower().strip("._-") in _ARCHIVES):
                return ARCHIVED
            if path != file and name.lower().strip("_") in _TEST_DATA:
                return TEST_DATA
            if (version := _version(path, is_file=path == file)) and self._is_older(*version):
                return OLDER
        return ""

    def _is_older(self, key: tuple[PurePath, str, str], number: tuple[int, ...]) -> bool:
        """Return whether a newer version is beside this one, or this one is a release that lint does not know."""
        _, prefix, suffix = key
        of_kubernetes = bool(_OF_KUBERNETES.fullmatch(prefix)) or (number[0] == 1 and len(number) == 2)
        usable = self._siblings[key]
        if of_kubernetes:
            # A release newer than the cluster's does not replace this one.
            usable = {each for each in usable if each <= (1, self._release.minor, 99)}
        if any(each > number for each in usable):
            return True
        too_old = number < (1, OLDEST.minor) and not suffix.startswith(_AND_LATER)
        return bool(_OF_KUBERNETES.fullmatch(prefix)) and too_old


def names_version(file: PurePath, version: str) -> bool:
    """Return whether a folder or the file has this version of an API in its name, such as `crds-v1beta1/`."""
    return any(version in re.split(r"[^a-z0-9]+", part.lower()) for part in file.parts)


def _names(file: PurePath) -> Iterator[PurePath]:
    """Yield the folders of a path from the top, and the path itself."""
    yield from list(file.parents)[-2::-1]
    yield file


def _version(path: PurePath, *, is_file: bool) -> tuple[tuple[PurePath, str, str], tuple[int, ...]] | None:
    """Return the version in a name, with what the names of its siblings have in common; None if there is none."""
    match = _VERSION.fullmatch((path.stem if is_file else path.name).lower())
    if match is None or not (_OF_KUBERNETES.fullmatch(match[1]) or (not is_file and _WORDS.fullmatch(match[1]))):
        return None
    return (path.parent, match[1], match[3]), tuple(map(int, match[2].split(".")))
