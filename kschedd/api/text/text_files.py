"""Decoding of text files, and detection of files whose format is not UTF-8 text."""

from typing import Final

import attrs

from kschedd.errors import KscheddError

_OTHER_FORMS: Final = (  # offset, bytes at this offset, format, command that converts the file to text
    (0, b"\x1f\x8b", "gzip data", "unpack"),
    (0, b"PK\x03\x04", "a zip archive", "unpack"),
    (0, b"BZh", "bzip2 data", "unpack"),
    (0, b"\xfd7zXZ\0", "xz data", "unpack"),
    (0, b"\x28\xb5\x2f\xfd", "zstd data", "unpack"),
    (257, b"ustar", "a tar archive", "unpack"),
    (0, b"\xff\xfe", "UTF-16 text", "convert"),  # written by PowerShell's `>`
    (0, b"\xfe\xff", "UTF-16 text", "convert"),
)


@attrs.define(eq=False)
class NotText(KscheddError):
    """Data that is not UTF-8 text."""

    line: int  # 1-based
    why: str


def text_of(data: bytes) -> str:
    """Return the text, including its byte order mark if there is one. Raises NotText."""
    for offset, mark, form, remedy in _OTHER_FORMS:
        if data.startswith(mark, offset):
            raise NotText(1, f"not UTF-8 text but {form}: {remedy} it first")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as wrong:
        line = data.count(b"\n", 0, wrong.start) + 1
        raise NotText(line, f"not UTF-8 text: byte 0x{data[wrong.start]:02x} at offset {wrong.start}") from None
