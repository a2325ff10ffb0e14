from pathlib import Path

from kschedd.methods import page

PAGE = Path(__file__).parents[2] / "METHODS.md"


def test_the_page_beside_the_readme_is_that_of_the_table() -> None:
    assert PAGE.read_text() == page(), "run: python -m kschedd.methods > METHODS.md"
