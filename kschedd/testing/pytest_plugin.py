"""The pytest plugin: the fixture `cluster`, its marker, and scenario files as test items.

    @pytest.mark.kschedd(version="1.36", seed=3, nodes=2)
    def test_placement(cluster):
        cluster.apply(pod("a"))
        assert cluster.placements() == {"a": "node-1"}

The marker accepts the arguments of `kschedd.Cluster`, and `versions`, a sequence of releases; the test runs once by the
rules of each release: `@pytest.mark.kschedd(versions=["1.34", "1.37"])`. The option `kschedd_scenarios` in the pytest
configuration contains the scenario files to collect, as patterns relative to the root folder, such as
`scenarios/*.txt`.

Before a fixture or a scenario is used, only this module of kschedd is imported.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kschedd.sdk.cluster import Cluster

_MARKER, _FIXTURE, _VERSIONS = "kschedd", "cluster", "versions"
_SCENARIOS = "kschedd_scenarios"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that contains the scenario files."""
    parser.addini(_SCENARIOS, "scenario files of kschedd to collect: patterns below the root folder", "args", [])


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", f"{_MARKER}(**options): how the fixture `cluster` is made, as kschedd.Cluster")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each release in the marker's `versions`."""
    versions = _options(metafunc.definition).get(_VERSIONS)
    if versions is not None and _FIXTURE in metafunc.fixturenames:
        metafunc.parametrize(_FIXTURE, versions, indirect=True)


def _options(item: pytest.Item) -> dict[str, Any]:
    """Return the arguments of the markers of a test; the closest marker takes precedence."""
    markers = reversed(list(item.iter_markers(_MARKER)))
    return {name: value for marker in markers for name, value in marker.kwargs.items()}


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """Yield a cluster in virtual time, created with the arguments of the marker `kschedd`."""
    from kschedd.sdk.cluster import Cluster

    options = _options(request.node)
    if options.pop(_VERSIONS, None) is not None:
        options["version"] = request.param
    with Cluster(**options) as made:
        yield made


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ScenarioFile | None":
    """Collect a scenario file if the configuration contains it."""
    root = parent.config.rootpath
    if not file_path.is_relative_to(root):
        return None
    patterns: Iterable[str] = parent.config.getini(_SCENARIOS)
    within = file_path.relative_to(root)
    return ScenarioFile.from_parent(parent, path=file_path) if any(map(within.match, patterns)) else None


class ScenarioFile(pytest.File):
    """A scenario file, which is one test."""

    def collect(self) -> "Iterator[ScenarioItem]":
        """Yield the one test."""
        yield ScenarioItem.from_parent(self, name="scenario")


class ScenarioItem(pytest.Item):
    """The test that runs a scenario and compares its output."""

    def runtest(self) -> None:
        """Run the scenario. Raises UnexpectedOutput with the differences."""
        from kschedd.testing.scenarios import check_scenario

        check_scenario(self.path)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return only the differences, because a traceback through kschedd does not help."""
        from kschedd.errors import KscheddError
        from kschedd.testing.scenarios import UnexpectedOutput

        if isinstance(excinfo.value, UnexpectedOutput | KscheddError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the location of the test for reports."""
        return self.path, 0, f"scenario: {self.path.name}"
