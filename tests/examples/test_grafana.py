"""The Grafana dashboard: every metric that it shows exists."""

import json
import re
from pathlib import Path

from kschedd.metrics import catalogue

DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana" / "kschedd.json"


def test_the_dashboard_shows_what_there_is() -> None:
    metrics = (*catalogue.UPSTREAM, *catalogue.OWN)
    kinds = {metric.name: metric.kind for metric in metrics}
    labels = {metric.name: set(metric.labels) for metric in metrics}
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    shown = [target for panel in panels for target in panel["targets"]]
    assert len(panels) == 16
    for target in shown:
        for name in re.findall(r"\b(?:scheduler|kschedd)_\w+", target["expr"]):
            base = re.sub(r"_(?:bucket|sum|count)$", "", name)
            assert kinds.get(base if base in kinds else name) is not None, name
            assert (kinds.get(base) == "histogram") is (base != name), name
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= labels[base], target
