"""Tests that every configuration that kube-scheduler accepted in the golden cases is accepted."""

import gzip
import json
from pathlib import Path

from kschedd.config.loading.load import config_from_raw
from tests.conftest import SharedPart


def test_golden_configs_load(shared_part: SharedPart) -> None:
    files = sorted(shared_part("conformance").glob("*.jsonl.gz"))
    assert files
    for path in files:
        _check_file(path)


def _check_file(path: Path) -> None:
    seen: set[str] = set()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            text = json.dumps(case["config"])
            gates = case.get("feature_gates", {})
            if text in seen and not gates:
                continue
            seen.add(text)
            config = config_from_raw(case["config"], feature_gates=gates)
            if "want" in case and case["config"] is not None and case["want"].get("scores"):
                profile = config.profile(case["pod"]["spec"].get("schedulerName", "default-scheduler"))
                assert profile is not None, case["id"]
                scored = set(case["want"]["scores"])
                assert scored <= {ref.name for ref in profile.at("score")}, case["id"]
                _check_weights(case["want"], {name: profile.weight(name) for name in scored}, case["id"])


def _check_weights(want: dict[str, dict[str, dict[str, int]]], weights: dict[str, int], case: str) -> None:
    """Check that each weighted score is a multiple of the weight, and at most 100 times the weight, as upstream."""
    for name, weight in weights.items():
        for score in want["scores"][name].values():
            assert score % weight == 0, (case, name)
            assert score <= 100 * weight, (case, name)
