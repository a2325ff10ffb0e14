"""Pasted text at the prompt: detection of a manifest, and of its objects. Pure."""

import re
import textwrap
from collections import Counter
from typing import Final

LONGEST_LINE: Final = 16_384
_KIND = re.compile(r"^kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)
_VERSION = re.compile(r"^apiVersion:[ \t]*\S", re.MULTILINE)
# the beginning of a manifest; no command begins like this
_BEGINS = re.compile(r"(?:[ \t]*(?:#.*)?\n)*(?:---|[A-Za-z]+:|\{|\[)")
_JSON_KIND = re.compile(r'"kind"\s*:\s*"([A-Za-z]+)"')


def pasted_manifest(text: str) -> str:
    """Return the text as a manifest, without its common indentation; "" if it does not look like a manifest."""
    lines = textwrap.dedent(text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)).strip("\n")
    if not _BEGINS.match(lines):
        return ""
    is_yaml = bool(_KIND.search(lines) and _VERSION.search(lines))
    is_json = lines.lstrip().startswith("{") and bool(_JSON_KIND.search(lines)) and '"apiVersion"' in lines
    return lines + "\n" if is_yaml or is_json else ""


def objects_in(manifest: str) -> str:
    """Return the number and kinds of the objects, such as `2 objects (Deployment, Service)`."""
    kinds = _KIND.findall(manifest) or _JSON_KIND.findall(manifest)[:1]
    counted = Counter(kinds)
    named = ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in counted.items())
    return f"{len(kinds)} {'object' if len(kinds) == 1 else 'objects'} ({named})"


def line_too_long(text: str) -> str:
    """Return an error if a line of a pasted text is too long for the prompt; "" if none is.

    Drawing a line that wraps a thousand times would take seconds after every key.
    """
    longest = max(map(len, text.split("\n")))
    if longest <= LONGEST_LINE:
        return ""
    return f"a pasted line of {longest:,} characters is too long (maximum {LONGEST_LINE:,}): put it into a file"
