"""For authors of plugins: manifests, one plugin asked on its own, a cluster in virtual time, the rules as checks.

from kschedd.testing import PluginCluster, check_scenario, judge, node, pod
from kschedd.testing.rules import RULES, check
"""

from kschedd.testing.judging import Judgement, judge
from kschedd.testing.objects import node, pod
from kschedd.testing.plugin_cluster import PluginCluster, UnexpectedOutput, check_scenario

__all__ = ["Judgement", "PluginCluster", "UnexpectedOutput", "check_scenario", "judge", "node", "pod"]
