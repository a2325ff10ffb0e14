"""Tests of the page in a browser: its script works, hostile names have no effect, and it fits the screen of a phone.

They are skipped without Chromium; test_report.py tests the page without a browser.
"""

import re
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from kschedd.report.page import page
from tests.report.runs import small_run

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_LONGEST_S = 180  # limit for a browser that hangs

Browse = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Browse:
    """Return a function that opens a page in a headless browser with these flags."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"there is no browser here to show the page in: none of {', '.join(_NAMES)} is on the path")

    def run(text: str, *flags: str, fragment: str = "") -> subprocess.CompletedProcess[str]:
        folder = tmp_path_factory.mktemp("browser")
        file = folder / "page.html"
        file.write_text(text, encoding="utf-8")
        base = (found, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
        own = f"--user-data-dir={folder / 'profile'}"
        return subprocess.run(
            [*base, own, *flags, f"file://{file}{fragment}"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LONGEST_S,
            check=False,
        )

    probe = run("<p>here", "--dump-dom")
    if probe.returncode or "here" not in probe.stdout:
        pytest.skip(f"{found} does not run headless here: {probe.stderr.strip()[-300:]}")
    return run


def with_script(text: str, script: str) -> str:
    """Return the page with an additional script that runs after its own scripts."""
    return text.replace("</body>", f"<script>{script}</script></body>")


def test_a_cell_says_what_it_is_about_and_a_link_opens_what_it_leads_to(browse: Browse) -> None:
    script = """
        const cells = document.querySelector('.cells');
        const box = cells.getBoundingClientRect();
        cells.dispatchEvent(new MouseEvent('click', {clientX: box.left + box.width * 0.3, clientY: box.top + 1}));
        cells.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', cancelable: true}));
    """
    shown = browse(with_script(page(small_run()), script), "--dump-dom", fragment="#g-1").stdout
    panel = re.search(r'(?s)<aside id="panel"[^>]*>(.*?)</aside>', shown)
    assert panel is not None
    reported = re.sub(r"<[^>]+>", " ", panel[1])
    assert "node-b" in reported
    assert "about 76 %" in reported  # 3 of 4
    assert "attempts" in reported
    assert re.search(r'<details id="g-1" open=""', shown)
    assert not re.search(r'<details id="g-0" open=""', shown)


def test_hostile_names_do_nothing(browse: Browse) -> None:
    hostile = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    report = small_run()
    groups = [attrs.evolve(group, label=hostile, zone=hostile) for group in report.groups]
    decisions = {number: attrs.evolve(each, pod=hostile, message=hostile) for number, each in report.decisions.items()}
    text = page(attrs.evolve(report, groups=groups, decisions=decisions))
    script = "document.querySelector('.cells').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));"
    shown = browse(with_script(text, script), "--dump-dom").stdout
    assert "<title>A run</title>" in shown
    assert 'id="panel" aria-live="polite"' in shown
    assert "&lt;img src=x" in shown
    assert "<img" not in shown


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_by_day_and_by_night(browse: Browse, tmp_path: Path, scheme: str) -> None:
    script = "document.title = document.documentElement.scrollWidth <= innerWidth ? 'fits' : 'too wide'"
    flags = ["--window-size=500,900"]
    if scheme == "dark":
        flags.append("--blink-settings=preferredColorScheme=0")
    text = with_script(page(small_run()), script)
    assert "<title>fits</title>" in browse(text, *flags, "--dump-dom").stdout
    picture = tmp_path / "shot.png"
    browse(text, *flags, f"--screenshot={picture}")
    data = picture.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (500, 900)
    assert len(data) > 10_000  # a blank page has some hundred bytes
