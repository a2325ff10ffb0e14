"""The generated pages of the reference, from the code that they describe."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kschedd.methods import described_methods
from tests.reference.command_line import command_line_pages
from tests.reference.configuration import configuration_pages
from tests.reference.lint import lint_pages
from tests.reference.methods import methods_pages

ROOT: Final = Path(__file__).parents[2]
#: the folder that contains only generated pages
REFERENCE: Final = "docs/reference"


def reference_pages() -> Mapping[str, str]:
    """Return the pages as Markdown, by path from the root of the repository."""
    return {
        **methods_pages(described_methods()),
        **lint_pages(),
        **command_line_pages(),
        **configuration_pages(),
    }
