"""Tests that the notebooks run from the first cell to the last, and draw their plots."""

from pathlib import Path

import pytest

from kschedd import Cluster, node, pod

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"


@pytest.mark.full
@pytest.mark.parametrize("notebook", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra plots is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    client = pytest.importorskip("nbclient", reason="nbclient is not installed")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = nbformat.read(notebook, as_version=4)
    client.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    printed = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert printed
    assert not [output for output in printed if output.output_type == "error"]


def test_utilization_is_drawn_by_node_or_as_a_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="the extra plots is not installed")
    monkeypatch.setenv("MPLBACKEND", "agg")
    few = Cluster([node("n1"), node("n2")])
    few.apply(pod("a", cpu="1"))
    axes = few.plot_utilization()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["n1", "n2"]
    assert [bar.get_width() for bar in axes.containers[0]] == [0.25, 0.0]
    assert Cluster(nodes=61).plot_utilization().get_ylabel() == "nodes"


def test_pending_pods_are_drawn_by_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="the extra plots is not installed")
    monkeypatch.setenv("MPLBACKEND", "agg")
    cluster = Cluster(nodes=1)
    cluster.apply([pod(f"p{number}", cpu="50") for number in range(3)])
    assert [bar.get_width() for bar in cluster.plot_causes().containers[0]] == [3]


PLUGIN_CELLS = (
    """from kschedd import Cluster, pod

class OneRack:
    name = "OneRack"

    def filter(self, state, pod, node):
        return self.rack(node)

    def rack(self, node):
        return node.labels["rack"]
""",
    'cluster = Cluster(nodes=2, plugins=[OneRack])\ncluster.apply(pod("a"))\ncluster.pods',
    "print(cluster.plugin_faults[-1].traceback)",
)


@pytest.mark.full
def test_a_plugin_of_a_cell_is_used_in_the_next_with_tracebacks_of_its_own_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    client = pytest.importorskip("nbclient", reason="nbclient is not installed")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in PLUGIN_CELLS])
    client.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    table, printed = (cell.outputs[0] for cell in book.cells[1:])
    assert "<td>a</td>" in table["data"]["text/html"]
    assert 'return node.labels["rack"]' in printed["text"]
    assert "KeyError: 'rack'" in printed["text"]
    assert "kschedd/" not in printed["text"]
