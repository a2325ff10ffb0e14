"""`kschedd plugin new NAME`: creates a plugin skeleton with a test and a profile.

`kschedd plugin check FILE.py`: checks a plugin against the rules of the plugin interface.

Exit status of `check`: 0 if all rules are kept, 1 if a rule is broken, 2 if a file cannot be loaded.
"""

import argparse
import re
import sys
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Final

import attrs

from kschedd.commands.notices import report_error
from kschedd.errors import KscheddError
from kschedd.printing.terminal.safe import safe
from kschedd.verbs.command_line.parsing import path_value

if TYPE_CHECKING:
    from kschedd.framework.registry import Registry

BROKEN, UNUSABLE = 1, 2
_SEEDS: Final = 40
_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")

PLUGIN: Final = Template('''\
"""$name: what it is for, in one sentence.

    kschedd run --plugin $module.py --config $module.yaml

This one keeps pods with a label `example.com/limit: "3"` away from nodes with as many pods, and prefers nodes with few.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import attrs

from kschedd.plugin import (
    ActionType,
    ClusterEventWithHint,
    CycleState,
    EventResource,
    Handle,
    Ints,
    NodeInfo,
    Pod,
    RawArgs,
    Status,
    default_normalize,
    on,
    unschedulable,
)

LIMIT = "example.com/limit"


@attrs.define(eq=False)
class $name:
    name: ClassVar = "$name"
    most: int = 110

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        """Read the arguments of the profile's `pluginConfig`. The text of a ValueError is shown to the user."""
        most = args.values.get("most", 110)
        if not isinstance(most, int) or most < 1:
            raise ValueError(f"most: {most!r}: must be a whole number from 1 up")
        return cls(most)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Return None if the pod may run on the node, else the reason."""
        text = pod.labels.get(LIMIT, "")
        limit = min(int(text), self.most) if text.isdecimal() else self.most
        if len(node.pods) < limit:
            return None
        return unschedulable("node(s) had as many pods as allowed")

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(node.pods)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        """Return scores from 0 to 100, the highest for the fewest pods."""
        return default_normalize(scores, reverse=True)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Return the events that may help a rejected pod; only these make the queue retry it."""
        return [
            on(EventResource.NODE, ActionType.ADD),
            on(EventResource.POD, ActionType.DELETE | ActionType.UPDATE_POD_LABEL),
        ]
''')

TEST: Final = Template('''\
"""Tests of $name. Run with pytest."""

import sys
from pathlib import Path

import pytest

from kschedd import Cluster, node, pod
from kschedd.testing.judging import judge
from kschedd.testing.rules import RULES, check

sys.path.insert(0, str(Path(__file__).parent))

from $module import LIMIT, $name  # noqa: E402


def test_a_full_node_is_rejected_and_the_other_preferred():
    here = [pod("a", node_name="n1"), pod("b", node_name="n1")]
    verdicts = judge($name, pod("new", labels={LIMIT: "2"}), [node("n1"), node("n2")], here)
    assert verdicts["n1"].reason == "node(s) had as many pods as allowed"
    assert verdicts["n2"].fits


def test_in_a_cluster():
    cluster = Cluster(plugins=[$name], plugin_args={"$name": {"most": 1}})
    cluster.apply(node("n1"), pod("a"), pod("b"))
    assert cluster.placements() == {"a": "n1", "b": None}
    assert "1 node(s) had as many pods as allowed" in cluster.message("b")
    cluster.delete("Pod", "a", grace_period_s=0)
    cluster.advance(30)
    assert cluster.placements() == {"b": "n1"}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_it_keeps_the_rules(rule):
    check(rule, $name, pod_labels={LIMIT: ("0", "2", "x")})
''')

PROFILE: Final = Template("""\
# kschedd run --plugin $module.py --config $module.yaml
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled: [{name: $name, weight: 2}]
    pluginConfig:
      - {name: $name, args: {most: 110}}
""")


@attrs.define(eq=False)
class PluginCommandError(KscheddError):
    why: str


def add_parser(subparsers: Any) -> None:
    from kschedd.verbs.command_line.overview import brief
    from kschedd.verbs.table import group_members

    parser = subparsers.add_parser(
        "plugin",
        help="create a plugin skeleton, or check a plugin",
        description="Create a plugin with its test and a profile, or check plugin files against the rules of the "
        "plugin interface in random clusters. examples/plugins/README.md describes plugins. The other "
        "commands list and reload the plugins of a running daemon.",
    )
    what = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    new = what.add_parser("new", help="create a plugin file with a test and a profile")
    new.add_argument("name", metavar="NAME", help="name of the plugin in profiles, such as CheapNodes")
    new.add_argument("--folder", type=path_value, default=Path(), metavar="DIR", help="directory (.)")
    new.set_defaults(run=_new)
    check = what.add_parser("check", help="check the plugins of a file against the rules of the plugin interface")
    check.add_argument("files", nargs="+", type=path_value, metavar="FILE.py")
    check.add_argument(
        "--config",
        type=path_value,
        metavar="FILE",
        help="a configuration with the plugins' arguments; default: no arguments",
    )
    check.add_argument(
        "--seeds", type=int, default=_SEEDS, metavar="N", help=f"number of random clusters; default {_SEEDS}"
    )
    check.set_defaults(run=_check)
    for name, summary in group_members("plugin"):  # verbs, listed here for the help and for suggestions
        what.add_parser(name, help=brief(summary))


def _new(options: argparse.Namespace) -> int:
    name: str = options.name
    if not _NAME.fullmatch(name):
        raise PluginCommandError(
            f"{name!r} is not a plugin name: expected a capital letter, then letters and digits, such as CheapNodes"
        )
    from kschedd.config.in_tree import IN_TREE

    if name in IN_TREE:
        raise PluginCommandError(f"{name} is a built-in plugin; choose another name")
    module = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    texts = {f"{module}.py": PLUGIN, f"test_{module}.py": TEST, f"{module}.yaml": PROFILE}
    files = {options.folder / file: text.substitute(name=name, module=module) for file, text in texts.items()}
    there = [str(path) for path in files if path.exists()]
    if there:
        raise PluginCommandError(f"{', '.join(there)}: already exist; nothing was written")
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise PluginCommandError(f"{options.folder}: cannot be written to: {fault.strerror}") from fault
    plugin, test, profile = files
    print(safe(f"written: {plugin}, {test}, {profile}"))
    print(safe(f"test it: python -m pytest {test}    (pip install pytest)"))
    print(safe(f"run it:  kschedd run --plugin {plugin} --config {profile}"))
    return 0


def _check(options: argparse.Namespace) -> int:
    from kschedd.config.parsing.faults import ConfigErrors
    from kschedd.framework.look_alikes import look_alikes
    from kschedd.framework.registry import PluginLoadError, Registry
    from kschedd.printing.terminal.progress import ProgressLine
    from kschedd.testing.rules import RULES, BrokenRule, check

    if options.seeds < 1:
        raise PluginCommandError(f"--seeds {options.seeds}: must be 1 or more")
    registry = Registry()
    broken = 0
    try:
        names = [name for file in options.files for name in registry.add_file(file)]
        arguments = _arguments(options.config, registry)
    except (PluginLoadError, ConfigErrors) as fault:
        report_error(str(fault))
        return UNUSABLE
    progress = ProgressLine(sys.stderr)
    for name in names:
        if name in registry.validating:
            print(safe(f"{name}: an admission plugin: there are no rules to hold it to"))
            continue
        faults = []
        for number, rule in enumerate(RULES, 1):
            progress.show(f"{name}: rule {number} of {len(RULES)}, {rule}")
            try:
                check(rule, registry.plugin_class(name), arguments.get(name), seeds=range(options.seeds))
            except BrokenRule as fault:
                faults.append(f"{rule}: seed {fault.seed}: {fault.what}")
            except Exception as fault:  # report every exception of the plugin as a finding of the check
                faults.append(f"{rule}: raised {type(fault).__name__}: {fault}")
        progress.clear()
        broken += len(faults)
        print(safe(f"{name}: {len(RULES) - len(faults)} of {len(RULES)} rules kept in {options.seeds} random clusters"))
        for line in faults:
            print(safe(f"  {line}"))
        if unused := look_alikes(registry.plugin_class(name)):
            print(safe(f"  never called, and named like what is: {', '.join(unused)}"))
    return BROKEN if broken else 0


def _arguments(path: Path | None, registry: "Registry") -> dict[str, Any]:
    """Return the plugin arguments in the profiles of this file, by plugin name.

    If several profiles have arguments for a plugin, the first profile's arguments are returned. Raises ConfigErrors and
    PluginCommandError.
    """
    from kschedd.config.in_tree import IN_TREE
    from kschedd.config.loading.load import load_config

    if path is None:
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise PluginCommandError(f"{path}: cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault
    config = load_config(text, str(path), catalogue=IN_TREE | registry.catalogue())
    return {name: args for profile in reversed(config.profiles) for name, args in profile.plugin_args.items()}
