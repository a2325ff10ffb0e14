"""The Grafana dashboard: every metric that it shows is one that there is."""

import json
import re
from pathlib import Path

from kschedd.queue.metrics import QueueMetrics
from kschedd.queue.scheduling_queue import SchedulingQueue
from kschedd.scheduling.metrics import SchedulingMetrics

DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana" / "kschedd.json"


def test_the_dashboard_shows_what_there_is() -> None:
    families = [
        *SchedulingMetrics(lambda: 0.0).families({}, {}),
        *QueueMetrics().families(SchedulingQueue()),
    ]
    kinds = {family.metric.name: family.metric.kind for family in families}
    labels = {family.metric.name: set(family.metric.labels) for family in families}
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    shown = [target for panel in panels for target in panel["targets"]]
    assert len(panels) == 12
    for target in shown:
        for name in re.findall(r"\b(?:scheduler|kschedd)_\w+", target["expr"]):
            base = re.sub(r"_(?:bucket|sum|count)$", "", name)
            assert kinds.get(base if base in kinds else name) is not None, name
            assert (kinds.get(base) == "histogram") is (base != name), name
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels[base], target
