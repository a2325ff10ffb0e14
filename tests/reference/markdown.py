"""Markdown that the generated pages share."""


def cell(text: str) -> str:
    """Return Markdown text for a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
