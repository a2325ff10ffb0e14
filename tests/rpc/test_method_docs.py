from typing import Any

import attrs
import pytest

from kschedd.rpc.method_docs import methods_page
from kschedd.rpc.sessions.built_in import method_table
from kschedd.service.errors import CODES
from kschedd.service.params import Param
from kschedd.service.table import Call, Method


async def _get(call: Call) -> Any:
    return None


GET = Method(
    "pod.get",
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
    page = methods_page(method_table([attrs.evolve(GET, reads=False)]))
    assert "### `pod.get`\n\nGets objects.\n\nThis method writes: read-only users may not call it.\n" in page


def test_a_method_on_the_page() -> None:
    page = methods_page(method_table([GET]))
    assert "- [`pod.get`](#podget)\n" in page
    start = page.index("### `pod.get`")
    assert page[start : page.index("### `rpc.methods`")] == (
        "### `pod.get`\n"
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
        "\n"
    )


def test_the_page_has_every_method_and_every_code() -> None:
    table = method_table([GET])
    page = methods_page(table)
    assert [line for line in page.splitlines() if line.startswith("### ")] == [f"### `{name}`" for name in table]
    for code in CODES:
        assert f"| `{code}` |" in page
    assert page.endswith("\n")
    assert not page.endswith("\n\n")


def test_a_method_needs_a_word_of_documentation_and_a_name_of_its_own() -> None:
    with pytest.raises(AssertionError, match="without a word"):
        Method("x", _get)
    with pytest.raises(AssertionError, match=r"two methods are called pod\.get"):
        method_table([GET, GET])
    with pytest.raises(AssertionError, match="two parameters of one name"):
        Method("x", _get, (Param("a"), Param("a")), doc="X.")
