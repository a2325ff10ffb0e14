"""Tests of the Kubernetes versions: the features of each, and enabling of single rules."""

import ast
import re
from pathlib import Path

import attrs
import pytest

import kschedd
from kschedd.config.changing.changes import with_plugin_enabled, with_profile_added
from kschedd.config.loading.load import config_from_raw, default_config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.versions.feature_gates import parse_flag
from kschedd.config.versions.kube_versions import (
    KUBE_VERSIONS,
    V1_34,
    V1_34_1,
    V1_36,
    V1_37,
    KubernetesVersion,
    UnknownVersionError,
    kube_version,
)
from kschedd.config.versions.rules import RULES, Rules


@pytest.mark.parametrize(
    ("text", "version"),
    [("1.34.1", V1_34_1), ("1.34", V1_34), ("v1.34.9", V1_34), ("1.36", V1_36), ("1.36.3", V1_36)],
)
def test_a_version_is_named_by_its_release_or_by_its_patch(text: str, version: KubernetesVersion) -> None:
    assert kube_version(text) is version


def test_a_version_that_there_is_not_is_refused_with_those_there_are() -> None:
    supported = r"is not supported \(supported: 1.34.1, 1.34, 1.35, 1.36, 1.37\)"
    for text, why in (
        ("1.33", "; 1.34 is the closest: before 1.34, kube-scheduler ignores device claims .*; use 1.34"),
        ("v1.38.1", "; 1.37 is the newest supported release; use 1.37"),
        ("1.36.9", "; 1.36 stands for 1.36.3; use 1.36"),
        ("newest", "$"),
    ):
        with pytest.raises(UnknownVersionError, match=f'Kubernetes "{text}" {supported}{why}'):
            kube_version(text)


def test_without_a_version_it_is_the_current_patch_of_1_37() -> None:
    assert default_config().version is V1_37
    assert default_config().release == "v1.37"
    assert default_config(version=V1_36).release == "v1.36"


def test_1_34_1_is_where_rules_start_from() -> None:
    assert V1_34_1.default_rules.names == Rules().names == ()
    assert V1_34.default_rules.names == ("untolerated_taints_unnamed", "terminating_victims_deleted")


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_what_it_is(rule: object) -> None:
    assert attrs.asdict(rule)["what"]
    assert attrs.asdict(rule)["where"]


@pytest.mark.parametrize("version", KUBE_VERSIONS.values(), ids=KUBE_VERSIONS)
def test_a_rule_of_a_version_takes_a_gate_that_the_version_has(version: KubernetesVersion) -> None:
    for name in version.rules.names:
        assert not RULES[name].gates or version.gates.keys() & set(RULES[name].gates)


def test_a_rule_does_not_hold_without_its_gate() -> None:
    gates = parse_flag(["DRADeviceTaints=false"], V1_36.gates)
    config = default_config(version=V1_36, feature_gates=gates)
    off_by_default = {"pod_groups", "groups_of_v1alpha2", "gang_scheduling", "capacity_scored", "volumes_need_driver"}
    assert set(V1_36.rules.names) - set(config.rules.names) == {"device_taints"} | off_by_default


def test_default_plugins_follow_from_the_rules() -> None:
    before, after = (default_config(version=version).profiles[0] for version in (V1_34, V1_36))
    assert set(after.names()) - set(before.names()) == {"NodeDeclaredFeatures"}
    assert (before.weight("DynamicResources"), after.weight("DynamicResources")) == (0, 2)
    assert {ref.name: ref.weight for ref in after.at("score")} == {
        **{ref.name: ref.weight for ref in before.at("score")},
        "DynamicResources": 2,
    }
    assert after.at("filter")[-1].name == "NodeDeclaredFeatures"


def test_a_gate_that_is_off_takes_its_default_plugin_away() -> None:
    config = default_config(version=V1_36, feature_gates={"NodeDeclaredFeatures": False})
    assert "NodeDeclaredFeatures" not in config.profiles[0].names()


def test_a_point_that_takes_a_rule_is_refused_without_it() -> None:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"score": {"enabled": [{"name": "DynamicResources", "weight": 3}]}}}],
    }
    assert config_from_raw(raw, version=V1_36).profiles[0].weight("DynamicResources") == 3
    with pytest.raises(ConfigErrors, match="does not take part in score"):
        config_from_raw(raw, version=V1_34)
    with pytest.raises(ConfigErrors, match="does not implement"):
        with_plugin_enabled(default_config(version=V1_34), "default-scheduler", "DynamicResources", ["score"])


def test_a_profile_that_is_added_has_the_defaults_of_the_version() -> None:
    config = with_profile_added(default_config(version=V1_36), "other")
    assert [profile.weight("DynamicResources") for profile in config.profiles] == [2, 2]


@pytest.mark.parametrize(
    ("gates", "why"),
    [
        ("DynamicResourceAllocation=false", "locked"),
        ("NodeDeclaredFeature=true", 'did you mean "NodeDeclaredFeatures'),
        ("CSIMigrationPortworx=true", "always on since v1.33, and its gate was removed after v1.35"),
    ],
)
def test_gates_are_those_of_the_version(gates: str, why: str) -> None:
    with pytest.raises(ConfigErrors, match=why):
        parse_flag([gates], V1_36.gates)
    assert parse_flag(["DynamicResourceAllocation=false"], V1_34.gates) == {"DynamicResourceAllocation": False}
    with pytest.raises(ConfigErrors, match="no such feature gate"):
        parse_flag(["NodeDeclaredFeatures=true"], V1_34.gates)


def test_a_rule_can_be_turned_on_by_itself_with_its_gate() -> None:
    mixed = V1_34.with_rule("device_taints", V1_36)
    config = default_config(version=mixed)
    assert config.rules == attrs.evolve(V1_34.default_rules, device_taints=True)
    assert default_config(version=V1_34.with_rule("devices_scored", V1_36)).profiles[0].weight("DynamicResources") == 2
    assert default_config(version=V1_34.with_rule("terminating_victims_deleted", V1_36)).rules.names == (
        "untolerated_taints_unnamed",
    )


def test_no_code_asks_for_a_version_but_the_tables() -> None:
    """Code must test rules instead of versions; a comparison with a version would hide the rule."""
    asking = re.compile(r"\bif\b[^\n]*\b(V1_3\d(_\d)?|version\.name|version\.patch)\b")
    folder = Path(kschedd.__file__).parent
    found = [path.name for path in folder.rglob("*.py") if asking.search(path.read_text(encoding="utf-8"))]
    assert found in ([], ["kube_versions.py"])


@pytest.mark.parametrize(
    "path", sorted((Path(kschedd.__file__).parent / "plugins").glob("*.py")), ids=lambda path: path.stem
)
def test_a_plugin_names_the_rules_it_goes_by_and_chooses_by_them_once(path: Path) -> None:
    """The docstring must list the rules, and the plugin must not evaluate them during an attempt."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    named = ast.get_docstring(module) or ""
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef):
            requests = {each.attr for each in ast.walk(function) if isinstance(each, ast.Attribute) and _of_rules(each)}
            assert {rule for rule in requests if rule not in named} == set()
            assert (
                not requests or function.name == "from_args" or any(each.arg == "rules" for each in function.args.args)
            )


def _of_rules(read: ast.Attribute) -> bool:
    """Return whether the expression reads an attribute of `handle.rules` or of `rules`."""
    of = read.value
    return read.attr in RULES and (of.attr if isinstance(of, ast.Attribute) else getattr(of, "id", "")) == "rules"


def test_the_page_about_upgrades_has_every_rule() -> None:
    page = (Path(kschedd.__file__).parents[1] / "docs" / "UPGRADE.md").read_text(encoding="utf-8")
    for rule in RULES.values():
        gate = f" (gate {', '.join(rule.gates)})" if rule.gates else ""
        assert f"| `{rule.name}` | {rule.where} | {rule.releases} | {rule.what}{gate} |" in page
