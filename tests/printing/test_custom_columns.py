"""Tests of the output format custom-columns."""

import pytest

from kschedd.errors import KscheddError
from kschedd.printing.columns.custom_columns import columns_of_file, columns_of_text, custom_table

POD = {
    "metadata": {"name": "web", "labels": {"b": "2", "a": "1"}},
    "spec": {"containers": [{"name": "x"}, {"name": "y"}]},
}


@pytest.mark.parametrize(
    ("path", "cell"),
    [
        pytest.param(".metadata.name", "web", id="field"),
        pytest.param("metadata.name", "web", id="without-a-dot"),
        pytest.param("{.metadata.name}", "web", id="in-braces"),
        pytest.param("{metadata.name}", "web", id="in-braces-without-a-dot"),
        pytest.param(".spec.nodeName", "<none>", id="no-such-field"),
        pytest.param(".spec.containers[*].name", "x,y", id="several-values"),
        pytest.param(".metadata.labels", "map[a:1 b:2]", id="a-map-as-go-writes-it"),
        pytest.param(".spec.containers", "[map[name:x] map[name:y]]", id="a-list-as-go-writes-it"),
    ],
)
def test_a_cell_is_what_the_path_leads_to(path: str, cell: str) -> None:
    table = custom_table(columns_of_text(f"H:{path}"), [POD])
    assert (table.headers, table.rows) == (("H",), ((cell,),))


def test_a_file_has_headers_above_paths() -> None:
    table = custom_table(columns_of_file("NAME   C\n.metadata.name .spec.containers[0].name\n"), [POD])
    assert (table.headers, table.rows) == (("NAME", "C"), (("web", "x"),))


@pytest.mark.parametrize(
    ("read", "text", "why"),
    [
        (columns_of_text, "NAME", "unexpected custom-columns spec: NAME, expected <header>:<json-path-expr>"),
        (columns_of_text, "NAME:", "one path is expected"),
        (columns_of_text, "NAME:.a[", "a quoted name or ?(...) is expected"),
        (columns_of_file, "A B\n.a\n", "number of headers (2) and field specifications (1) don't match"),
        (columns_of_file, "A\n", "must contain a line of headers and a line of paths"),
    ],
)
def test_what_is_no_specification_is_refused(read, text: str, why: str) -> None:
    with pytest.raises(KscheddError) as refused:
        read(text)
    assert why in str(refused.value)
