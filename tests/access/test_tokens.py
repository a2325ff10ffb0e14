"""Tests of token files: their content, rejected files, and the user of each token."""

import os
from pathlib import Path

import pytest

from kschedd.access.errors import AccessError
from kschedd.access.tokens import StaticTokens, read_tokens
from kschedd.access.users import READ_ONLY, User


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "tokens.csv"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_file_of_tokens(tmp_path: Path) -> None:
    found = read_tokens(written(tmp_path, f'# who\nabc,ann,1,"dev,ops"\nxyz,bob,2\nr,eve,3,{READ_ONLY}\n'))
    assert found.user_of("abc") == User("ann", ("dev", "ops", "system:authenticated"), uid="1")
    assert found.user_of("xyz") == User("bob", ("system:authenticated",), uid="2")
    eve = found.user_of("r")
    assert eve is not None
    assert eve.read_only
    assert [user.read_only for user in found.users] == [False, False, True]


@pytest.mark.parametrize("token", ["", "ab", "abcd", "abc ", "abc\n", "ABC", "\ud800", "x" * 100_000])
def test_another_token_is_nobodys(token: str) -> None:
    assert StaticTokens.of({"abc": User("ann")}).user_of(token) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "contains no token", id="empty"),
        pytest.param("abc\n", ":1: a line must be TOKEN,USER,UID", id="no-user"),
        pytest.param(",ann,1\n", ":1: a line must be TOKEN,USER,UID", id="no-token"),
        pytest.param('"a\nb",ann,1\n', ":2: a token must be printable ASCII", id="a-token-with-a-newline"),
        pytest.param("a b,ann,1\n", ":1: a token must be printable ASCII", id="a-token-with-a-space"),
        pytest.param("ä,ann,1\n", ":1: a token must be printable ASCII", id="a-token-beyond-ascii"),
        pytest.param("abc,ann,1\nabc,bob,2\n", ":2: duplicate token", id="one-token-of-two"),
    ],
)
def test_what_is_no_file_of_tokens(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(AccessError, match=why) as refused:
        read_tokens(written(tmp_path, text))
    assert "abc" not in str(refused.value), "a token is never shown"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o601])
def test_a_file_that_others_may_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(AccessError, match=f"mode {mode:04o}.; run chmod 0600"):
        read_tokens(written(tmp_path, "abc,ann,1\n", mode))


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path, why in ((tmp_path / "pipe", "is not a regular file"), (tmp_path / "none", "No such file")):
        with pytest.raises(AccessError, match=why):
            read_tokens(path)
