"""Tests of the version of a daemon that starts from a dump or mirrors a cluster."""

from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedd.config.versions.kube_versions import DEFAULT, V1_34, V1_36
from kschedd.dumps.dumped_release import DumpedRelease
from kschedd.live.errors import LiveError
from kschedd.startup.options import DaemonOptions, read_options
from kschedd.startup.release import by_release, dumped, served_release


@attrs.frozen
class Server:
    """An API server with scripted answers and failures."""

    answer: Any
    url: str = "https://cluster.example.com"

    async def read_release(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "minor"),
    [
        pytest.param("v1.36.3+k3s1", 36, id="stated"),
        pytest.param("", None, id="not-stated"),
        pytest.param(LiveError("https://cluster.example.com", "is not there"), None, id="no-answer"),
    ],
)
async def test_a_server_states_its_release(answer: Any, minor: int | None) -> None:
    server: Any = Server(answer)
    assert await served_release(server) == DumpedRelease(minor)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        pytest.param(DaemonOptions(version_by_cluster=True), "1.36", id="by-the-cluster"),
        pytest.param(DaemonOptions(version=V1_34), "1.34", id="named"),
        pytest.param(
            DaemonOptions(version=V1_36.with_random_ties(), version_by_cluster=True),
            "1.36 with random ties",
            id="ties-stay-random",
        ),
    ],
)
def test_the_options_have_the_version_of_the_release(options: DaemonOptions, name: str) -> None:
    config, registry = read_options(options)
    changed, found = by_release(options, config, registry, DumpedRelease(36))
    assert changed.version.name == name
    assert found.version.name == name


def test_without_a_release_the_default_decides() -> None:
    options = DaemonOptions(version_by_cluster=True)
    config, registry = read_options(options)
    assert by_release(options, config, registry, DumpedRelease(None)) == (options, config)
    assert config.version is DEFAULT


def test_a_dump_is_not_read_ahead_where_a_journal_may_have_a_cluster(tmp_path: Path) -> None:
    options = DaemonOptions(version_by_cluster=True, origin=(str(tmp_path / "gone.yaml"),))
    config, _ = read_options(options)
    journal = tmp_path / "journal.db"
    journal.write_bytes(b"")
    assert dumped(options, config, journal, 0.0) is None
    assert dumped(attrs.evolve(options, version_by_cluster=False), config, None, 0.0) is None
    ahead = dumped(options, config, None, 0.0)
    assert ahead is not None
    assert ahead.count == 0
