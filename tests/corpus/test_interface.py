"""Tests that the public interface is the one that was written down, and contains that of each earlier release.

`KSCHEDD_REWRITE_INTERFACE=1 pytest tests/corpus/test_interface.py` rewrites the interface of the present version.
"""

import os
from importlib.metadata import version

from tests.corpus.interface import interface, paths
from tests.corpus.steps import RELEASED

PRESENT = RELEASED / version("kschedd") / "interface.txt"
EARLIER = sorted(set(RELEASED.glob("*/interface.txt")) - {PRESENT})


def test_the_interface_is_as_written_down() -> None:
    found = interface()
    if os.environ.get("KSCHEDD_REWRITE_INTERFACE"):
        PRESENT.write_text(found, encoding="utf-8")
    assert found == PRESENT.read_text(encoding="utf-8"), "review the change, then KSCHEDD_REWRITE_INTERFACE=1"


def test_the_keys_of_an_answer_are_found_in_its_shape() -> None:
    shape = "An array of `{pod, nodes: [{name, taints: [taint]}], by: {PLUGIN: {NODE: {raw?}}}, last}`."
    listed = "pod nodes nodes[].name nodes[].taints by by.PLUGIN by.PLUGIN.NODE by.PLUGIN.NODE.raw? last"
    assert list(paths(shape)) == listed.split()


def removed(released: str, present: str, announced: str) -> list[str]:
    """Return the lines of a released interface that the present one lacks, except announced ones."""
    return sorted(set(released.splitlines()) - set(present.splitlines()) - set(announced.splitlines()))


def test_nothing_of_an_earlier_release_is_gone_without_an_announcement() -> None:
    """A line that a later release may lack is in `changed.txt` of the release that had it."""
    for file in EARLIER:
        changed = file.with_name("changed.txt")
        announced = changed.read_text(encoding="utf-8") if changed.exists() else ""
        assert removed(file.read_text(encoding="utf-8"), interface(), announced) == [], file


def test_a_removed_line_is_found_unless_it_was_announced() -> None:
    assert removed("a\nb\nc\n", "b\nd\n", "") == ["a", "c"]
    assert removed("a\nb\nc\n", "b\nd\n", "a\n") == ["c"]
