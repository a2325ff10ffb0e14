from typing import Any

import attrs
import pytest

from kschedd.rpc.sessions.built_in import method_table
from kschedd.service.errors import CODES
from kschedd.service.params import Param
from kschedd.service.table import Call, Method
from tests.reference.methods import methods_pages

NODES = "docs/reference/methods/nodes.md"


async def _get(call: Call) -> Any:
    return None


GET = Method(
    "pods.get",
    _get,
    (
        Param("kind", "string|map", doc="which kind"),
        Param("output", "string", False, "json", "the form", choices=("json", "yaml")),
    ),
    doc="Gets objects.",
    reads=True,
    returns="an array",
    items="changes",
)


def test_a_method_that_writes_says_so_on_the_page() -> None:
    page = methods_pages(method_table([attrs.evolve(GET, reads=False)]))[NODES]
    assert "## `pods.get`\n\nGets objects.\n\nThis method writes: read-only users may not call it.\n" in page


def test_a_method_on_the_page() -> None:
    pages = methods_pages(method_table([GET]))
    assert "- [`pods.get`](docs/reference/methods/nodes.md#podsget)\n" in pages["METHODS.md"]
    page = pages[NODES]
    assert page[page.index("## `pods.get`") :] == (
        "## `pods.get`\n"
        "\n"
        "Gets objects.\n"
        "\n"
        "| parameter | type | default | meaning |\n"
        "|---|---|---|---|\n"
        "| `kind` | string\\|map | required | which kind |\n"
        '| `output` | string | `"json"` | the form (one of `json`, `yaml`) |\n'
        "\n"
        "Returns: an array\n"
        "\n"
        "Stream items: changes\n"
    )


def test_the_pages_have_every_method_and_every_code() -> None:
    table = method_table([GET])
    pages = methods_pages(table)
    headings = [line for page in pages.values() for line in page.splitlines() if line.startswith("## `")]
    assert sorted(headings) == sorted(f"## `{name}`" for name in table)
    for code in CODES:
        assert f"| `{code}` |" in pages["METHODS.md"]
    for page in pages.values():
        assert page.endswith("\n")
        assert not page.endswith("\n\n")


def test_a_method_needs_a_word_of_documentation_and_a_name_of_its_own() -> None:
    with pytest.raises(AssertionError, match="without a word"):
        Method("x", _get)
    with pytest.raises(AssertionError, match=r"two methods are called pods\.get"):
        method_table([GET, GET])
    with pytest.raises(AssertionError, match="two parameters of one name"):
        Method("x", _get, (Param("a"), Param("a")), doc="X.")
