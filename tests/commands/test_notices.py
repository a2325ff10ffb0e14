"""Output of commands without a session: wrapped at the width of the terminal, but commands stay whole."""

import pytest

from kschedd.commands import notices
from kschedd.printing.terminal.style import TerminalStyle

_LONG = " ".join(["word"] * 12)


def test_prose_is_wrapped_and_commands_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(notices, "style_of", lambda stream, environment: TerminalStyle(width=40))
    notices.show(f"{_LONG}\n  kubectl apply -f - <<'EOF'\n  {_LONG}\n  EOF\n  {_LONG}\n")
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines if len(line) > 40] == [_LONG]
    assert "  kubectl apply -f - <<'EOF'" in lines
    assert lines.index(f"  {_LONG}") == lines.index("  kubectl apply -f - <<'EOF'") + 1
    notices.note(_LONG)
    notices.warn("x")
    notices.report_error("y")
    assert capsys.readouterr().err.splitlines() == [f"Note: {_LONG[:34]}", _LONG[35:], "Warning: x", "error: y"]
