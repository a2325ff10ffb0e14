"""Tests that grouping nodes by their rejections, without a verdict for each, gives the same groups as the verdicts."""

from pathlib import Path
from typing import Final

import pytest

from kschedd.api.pods import Pod
from kschedd.explain.explain import begin
from kschedd.explain.judgment import Judgment
from tests.mistakes.mistake_files import FOLDER, load

_FILES: Final = (
    "volume-zone-full",
    "volume-in-another-zone",
    "node-volume-limit",
    "devices-all-allocated",
    "host-port-held-by-daemonset",
    "spread-behind-a-cordon",
    "anti-affinity-more-replicas-than-zones",
    "full-behind-other-taints",
)


@pytest.mark.parametrize("file", [FOLDER / f"{name}.yaml" for name in _FILES], ids=_FILES)
def test_grouped_rejections_are_those_of_the_verdicts(file: Path) -> None:
    engine = load(file).build().cluster.engine
    pods = [pod for pod in engine.store.list("Pod") if isinstance(pod, Pod) and not pod.node_name]
    assert pods
    grouped, judged = [Judgment(begin(engine.machine, pods[0], {})) for _ in range(2)]
    assert judged.verdicts
    assert grouped.alike == judged.alike
    assert "verdicts" not in vars(grouped)
