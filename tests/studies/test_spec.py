"""Tests of the specification of a sweep: messages state position, fault and permitted values."""

import re
from pathlib import Path
from typing import Any

import pytest

from kschedd.config.parsing.faults import ConfigErrors
from kschedd.simulation.results.measures import BY_RESOURCE, FIXED
from kschedd.studies.parameters import EMPTY_CONFIG, ParameterPathError, with_value
from kschedd.studies.plan import ParameterValueError, check_configurations
from kschedd.studies.spec import COLUMNS_OF_RUNS, FIELDS, SpecFileError, read_spec

ROOT = Path(__file__).parents[2]
METRICS = ", ".join([*FIXED, *(f"RESOURCE{end}" for end in BY_RESOURCE)])
GOOD = {"clusters": "{a: {generate: 1}}", "workloads": "{b: {generate: 1}}"}


def faults(tmp_path: Path, **fields: str) -> list[str]:
    path = tmp_path / "s.yaml"
    path.write_text("".join(f"{name}: {text}\n" for name, text in {**GOOD, **fields}.items() if text))
    with pytest.raises(ConfigErrors) as raised:
        read_spec(path)
    return str(raised.value).replace(f"{tmp_path}/", "").splitlines()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"seed": "3"}, 's.yaml:3: $.seed: no such field; did you mean "seeds"?'),
        ({"clusters": ""}, "s.yaml:1: $.clusters: required, but missing"),
        ({"until": "-5s"}, 's.yaml:3: $.until: "-5s": must be more than 0 (allowed: for example 90s, 10m)'),
        (
            {"limits": "{memory: -4Gi}"},
            's.yaml:3: $.limits.memory: "-4Gi": must be more than 0 (allowed: for example 512Mi, 4Gi)',
        ),
        (
            {"limits": "{time: 0s}"},
            's.yaml:3: $.limits.time: "0s": must be more than 0 (allowed: for example 90s, 10m)',
        ),
        ({"versions": "[]"}, "s.yaml:3: $.versions: []: at least one value is required"),
        ({"clusters": "[]"}, "s.yaml:1: $.clusters: []: must be a mapping of names, with at least one"),
        (
            {"clusters": "{a: {}}"},
            "s.yaml:1: $.clusters.a: {}: nodes are required "
            "(allowed: nodes: FILE.csv, generate: N, files: [PATH], from: [DUMP], pools: [FILE])",
        ),
        (
            {"clusters": "{a: {nodes: no.csv}}"},
            's.yaml:1: $.clusters.a.nodes: "no.csv": no.csv cannot be read: No such file or directory',
        ),
        (
            {"clusters": "{a: {generate: 1, shape: cpu}}"},
            "s.yaml:1: $.clusters.a.shape: \"cpu\": 'cpu' must be NAME=VALUE, as cpu=500m,memory=1Gi",
        ),
        (
            {"workloads": "{b: {generate: -1}}"},
            "s.yaml:2: $.workloads.b.generate: -1: out of range (allowed: 0 to 100000000)",
        ),
        (
            {"workloads": "{b: {generate: 1, fill: cpu=1%}}"},
            's.yaml:2: $.workloads.b.fill: "cpu=1%": requires pods: FILE.csv',
        ),
        (
            {"workloads": "{b: {generate: 1, lifetime: 3}}"},
            "s.yaml:2: $.workloads.b.lifetime: 3: must be text, not a whole number",
        ),
        (
            {"profiles": "{p: {config: no.yaml}}"},
            's.yaml:3: $.profiles.p.config: "no.yaml": cannot be read: No such file or directory',
        ),
        (
            {"seeds": "9-3"},
            's.yaml:3: $.seeds: "9-3": not seeds (allowed: a number of seeds (10 is 0 to 9), a range',
        ),
        (
            {"metrics": "[speed]"},
            f's.yaml:3: $.metrics[0]: "speed": no such metric (allowed: {METRICS})',
        ),
        ({"parameters": "{seed: [1]}"}, "s.yaml:3: $.parameters.seed: [1]: no name for a column"),
        (
            {"parameters": "{weights: [1]}"},
            "s.yaml:3: $.parameters.weights: [1]: a plugin is required: weights.NAME, args.NAME.FIELD",
        ),
        (
            {"parameters": "{percentageOfNodesToScore: []}"},
            "s.yaml:3: $.parameters.percentageOfNodesToScore: []: at least one value is required",
        ),
        (
            {"prices": "{nodes: {a: -1}}"},
            "s.yaml:3: $.prices.nodes.a: -1: out of range (allowed: 0 to 1e+09 in an hour)",
        ),
        (
            {"prices": "{}"},
            "s.yaml:3: $.prices: {}: no prices (allowed: nodes: {TYPE: PRICE}, resources: {RESOURCE: PRICE})",
        ),
        ({"targets": "[cpu=x]"}, "s.yaml:3: $.targets[0]: \"cpu=x\": cpu: "),
        (
            {"limits": "{time: soon}"},
            's.yaml:3: $.limits.time: "soon": not a duration (allowed: for example "500ms", "15s", "1m30s")',
        ),
        ({"versions": '["1.9"]'}, 's.yaml:3: $.versions[0]: "1.9": Kubernetes "1.9" is not supported (supported: '),
    ],
)  # fmt: skip
def test_a_fault_says_where_what_and_what_is_allowed(fields: dict[str, str], text: str, tmp_path: Path) -> None:
    [fault] = faults(tmp_path, **fields)
    assert fault.startswith(text)


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    assert len(faults(tmp_path, seeds="[x]", metrics="[y]", limits="{z: 1}")) == 3


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(SpecFileError, match=r"^no\.yaml: cannot be read: No such file or directory$"):
        read_spec("no.yaml")


def test_an_invalid_configuration_is_an_error_before_the_first_run() -> None:
    strategy = "args.NodeResourcesFit.scoringStrategy.type"
    spec = read_spec(
        {"clusters": {"a": {"generate": 1}}, "workloads": {"b": {"generate": 1}}, "parameters": {strategy: ["Best"]}}
    )
    with pytest.raises(
        ParameterValueError, match=f'^spec: profile default, {re.escape(strategy)}="Best": .*MostAllocated'
    ):
        check_configurations(spec)


@pytest.mark.parametrize(
    ("path", "value", "made"),
    [
        ("percentageOfNodesToScore", 5, {"percentageOfNodesToScore": 5}),
        ("weights.A", 3, {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "A", "weight": 3}]}}}]}),
        ("args.A.b.c", 1, {"profiles": [{"pluginConfig": [{"name": "A", "args": {"b": {"c": 1}}}]}]}),
        ("profiles[0].pluginConfig[A].args.b", 1, {"profiles": [{"pluginConfig": [{"name": "A", "args": {"b": 1}}]}]}),
    ],
)  # fmt: skip
def test_a_path_sets_a_value_and_makes_what_is_missing(path: str, value: Any, made: dict[str, Any]) -> None:
    assert with_value(EMPTY_CONFIG, path, value) == {**EMPTY_CONFIG, **made}


def test_a_weight_is_set_where_the_plugin_is_enabled_to_score() -> None:
    scored = {"profiles": [{"plugins": {"score": {"enabled": [{"name": "A", "weight": 1}, {"name": "B"}]}}}]}
    made = with_value(scored, "weights.A", 7)
    assert made == {"profiles": [{"plugins": {"score": {"enabled": [{"name": "A", "weight": 7}, {"name": "B"}]}}}]}
    assert scored["profiles"][0]["plugins"]["score"]["enabled"][0]["weight"] == 1  # the given one is kept


@pytest.mark.parametrize("path", ["", "a.", ".a", "a[", "a]b", "args", "args.A[0", "weights.A.b"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ParameterPathError):
        with_value(EMPTY_CONFIG, path, 1)


@pytest.mark.parametrize(
    ("path", "why"), [("a.b", "there is no mapping"), ("a[0]", "there is no list"), ("l[3]", "has 1 items")]
)
def test_a_path_that_does_not_fit_the_configuration_is_refused(path: str, why: str) -> None:
    with pytest.raises(ParameterPathError, match=why):
        with_value({"a": 1, "l": [0]}, path, 1)


def test_the_page_lists_fields_metrics_and_columns() -> None:
    page = (ROOT / "docs" / "RESEARCH.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page))
    assert set(FIELDS) | set(COLUMNS_OF_RUNS) <= named
    assert {name for name in FIXED if not re.search(r"_(p\d+|max)$", name)} <= named
