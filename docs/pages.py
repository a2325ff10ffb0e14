"""The documentation site shows the repository's pages under their own paths, so links work in both places.

A hook of MkDocs (see mkdocs.yml) serves every Markdown page and image in git under its own path, with README.md as the
front page. A link to any other file (a profile, a source file) leads to the repository.
"""

import re
import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")


def _tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return listed.stdout.splitlines()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for file in list(files.documentation_pages()):
        files.remove(file)
    for path in _tracked():
        if path.endswith((".md", ".png", ".svg")):
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    here = (ROOT / page.file.src_uri).parent

    def target(link: re.Match[str]) -> str:
        path = (here / link[1]).resolve()
        if not path.exists() or path.suffix in (".md", ".png", ".svg"):
            return link[1]
        return f"{config.repo_url}/{'tree' if path.is_dir() else 'blob'}/main/{path.relative_to(ROOT)}"

    return _LINK.sub(target, markdown)
