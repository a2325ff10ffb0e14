"""Text within Markdown."""


def cell(text: str) -> str:
    """Text within a table: nothing in it is markup."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}" if sign not in "<>" else {"<": "&lt;", ">": "&gt;"}[sign])
    return " ".join(text.split())
