"""The files of the page, and a page in one file: with its style, its scripts, and the answers that its views read.

The daemon serves the files as they are. A report is one file: a module becomes a function that returns its exports, the
functions stand in the order of their imports, and the answers of methods are JSON in the file.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

_ENTRY: Final = "main"
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_IMPORT: Final = re.compile(r'^import (?:\* as (\w+)|(\{[^}]*\})) from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)

Answers = Mapping[str, Sequence[tuple[Mapping[str, Any], Any]]]
"""By method: the parameters that identify an answer, and the answer."""


def assets() -> dict[str, bytes]:
    """Return the files of the page by name."""
    return {entry.name: entry.read_bytes() for entry in files("kschedd.page").joinpath("assets").iterdir()}


def one_file(title: str, content: str, answers: Answers) -> str:
    """Return the page as one file, which loads nothing.

    `title` and `content` are HTML; the content is readable without scripts.
    """
    texts = {name: body.decode() for name, body in assets().items()}
    script = _one_script(texts)
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"{_POLICY}; script-src 'sha256-{digest}'"
    kept = _json({method: list(answers[method]) for method in sorted(answers)})
    parts = {
        "<title>kschedd</title>": f"<title>{title}</title>",
        '<link rel="icon" href="icon.svg" type="image/svg+xml">\n': "",
        '<link rel="stylesheet" href="page.css">': (
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{texts["page.css"]}</style>\n'
            "<noscript><style>#views{display:none}</style></noscript>"
        ),
        '<script type="module" src="main.js"></script>\n': "",
        '<ul id="views">': '<ul id="views">\n<li><a href="#/summary">Summary</a></li>',
        '<p id="facts" role="status"></p>': f'<p id="facts">{title}</p>',
    }
    page = texts["index.html"]
    for old, new in parts.items():
        assert page.count(old) == 1, old
        page = page.replace(old, new)
    head, tail = re.split(r"(?s)<noscript>This page.*?</noscript>", page)
    scripts = f'<script type="application/json" id="kept">{kept}</script>\n<script>{script}</script>\n'
    return f'{head}<div id="summary">{content}</div>{tail.replace("</body>", f"{scripts}</body>")}'


def _json(value: Any) -> str:
    """Return JSON that cannot close the HTML element around it."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _one_script(texts: Mapping[str, str]) -> str:
    """Return the modules as one script, each after those that it imports."""
    made: dict[str, str] = {}

    def add(name: str) -> None:
        text = texts[f"{name}.js"]
        for found in _IMPORT.finditer(text):
            if found[3] not in made:
                add(found[3])
        exports = ", ".join(_EXPORT.findall(text))
        body = _EXPORT.sub(
            "", _IMPORT.sub(lambda found: f"const {found[1] or found[2]} = {_called(found[3])};\n", text)
        )
        made[name] = f"const {_called(name)} = (() => {{\n{body}return {{ {exports} }};\n}})();\n"

    add(_ENTRY)
    script = '"use strict";\n' + "".join(made.values())
    assert "</script" not in script, "the script would end there"
    return script


def _called(module: str) -> str:
    return "module_" + module.replace("-", "_")
