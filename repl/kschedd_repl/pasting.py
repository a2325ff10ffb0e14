"""What is pasted at the prompt: whether it is a manifest, and of which objects. Pure."""

import re
import textwrap
from collections import Counter
from typing import Final

LONGEST_LINE: Final = 16_384
_KIND = re.compile(r"^kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)
_VERSION = re.compile(r"^apiVersion:[ \t]*\S", re.MULTILINE)
_BEGINS = re.compile(r"(?:[ \t]*(?:#.*)?\n)*(?:---|[A-Za-z]+:|\{|\[)")  # no command begins like it
_JSON_KIND = re.compile(r'"kind"\s*:\s*"([A-Za-z]+)"')


def pasted_manifest(text: str) -> str:
    """The text as a manifest, its lines moved to the left edge; "" if it does not look like one."""
    lines = textwrap.dedent(text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)).strip("\n")
    if not _BEGINS.match(lines):
        return ""
    is_yaml = bool(_KIND.search(lines) and _VERSION.search(lines))
    is_json = lines.lstrip().startswith("{") and bool(_JSON_KIND.search(lines)) and '"apiVersion"' in lines
    return lines + "\n" if is_yaml or is_json else ""


def objects_in(manifest: str) -> str:
    """`2 objects (Deployment, Service)`, by what their kinds say."""
    kinds = _KIND.findall(manifest) or _JSON_KIND.findall(manifest)[:1]
    counted = Counter(kinds)
    named = ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in counted.items())
    return f"{len(kinds)} {'object' if len(kinds) == 1 else 'objects'} ({named})"


def line_too_long(text: str) -> str:
    """Why a pasted text is not put into a prompt: a line that is wrapped a thousand times is drawn for seconds, again
    and again. "" if there is no such line."""
    longest = max(map(len, text.split("\n")))
    if longest <= LONGEST_LINE:
        return ""
    return f"a pasted line of {longest:,} characters is not taken, {LONGEST_LINE:,} at most: put it into a file"
