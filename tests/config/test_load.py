"""Tests of KubeSchedulerConfiguration files: their settings, and rejections."""

import json
import textwrap

import pytest

from kschedd.config.args import RawArgs
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw, default_config, load_config
from kschedd.config.model import Config, Extender, ExtenderTLS, LeaderElection, ManagedResource
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.config.plugin_info import PluginInfo
from kschedd.config.versions.kube_versions import V1_34
from kschedd.plugins.resources.noderesources_args import NodeResourcesFitArgs

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def loaded(body: str) -> Config:
    return load_config(HEAD + textwrap.dedent(body), "it.yaml")


def refusals(text: str) -> list[str]:
    """Return every fault as line, path and reason."""
    with pytest.raises(ConfigErrors) as refused:
        load_config(text, "it.yaml")
    return [f"{error.line} {error.path}: {error.why}" for error in refused.value.errors]


def test_nothing_but_the_kind_is_the_default_configuration() -> None:
    assert load_config(HEAD, "it.yaml") == default_config() == config_from_raw(None)


def test_defaults_are_those_of_1_34() -> None:
    config = default_config()
    assert (config.parallelism, config.percentage_of_nodes_to_score) == (16, 0)
    assert (config.pod_initial_backoff_s, config.pod_max_backoff_s) == (1, 10)
    assert config.leader_election == LeaderElection(True, 15.0, 10.0, 2.0, "leases", "kube-system", "kube-scheduler")
    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler"]
    assert config.percentage(config.profiles[0]) == 0
    assert config.gate("SchedulerPopFromBackoffQ")


def test_every_field_is_read() -> None:
    config = loaded(
        """
        parallelism: 4
        percentageOfNodesToScore: 30
        podInitialBackoffSeconds: 2
        podMaxBackoffSeconds: 2
        enableProfiling: false
        delayCacheUntilActive: true
        leaderElection: {leaderElect: false, leaseDuration: 1m30s, resourceName: mine}
        clientConnection: {kubeconfig: /etc/kubeconfig, qps: 20.5, burst: 7}
        profiles:
          - schedulerName: one
            percentageOfNodesToScore: 0
          - schedulerName: two
        extenders:
          - urlPrefix: https://extender.example/scheduler
            filterVerb: filter
            prioritizeVerb: prioritize
            weight: 5
            bindVerb: bind
            enableHTTPS: true
            tlsConfig: {serverName: extender, certData: Y2VydA==, keyData: a2V5}
            httpTimeout: 300ms
            nodeCacheCapable: true
            ignorable: true
            managedResources: [{name: example.com/gpu, ignoredByScheduler: true}, {name: example.com/nic}]
        """
    )
    assert (config.parallelism, config.pod_initial_backoff_s, config.pod_max_backoff_s) == (4, 2, 2)
    assert not config.enable_profiling
    assert not config.enable_contention_profiling
    assert config.delay_cache_until_active
    assert config.leader_election.lease_duration_s == 90.0
    assert config.leader_election.resource_name == "mine"
    assert (config.client_connection.qps, config.client_connection.burst) == (20.5, 7)
    one, two = config.profile("one"), config.profile("two")
    assert one is not None
    assert two is not None
    assert (config.percentage(one), config.percentage(two)) == (0, 30)
    assert config.profile("three") is None
    assert config.extenders == (
        Extender(
            url_prefix="https://extender.example/scheduler",
            filter_verb="filter",
            prioritize_verb="prioritize",
            bind_verb="bind",
            weight=5,
            enable_https=True,
            tls=ExtenderTLS(server_name="extender", cert_data=b"cert", key_data=b"key"),
            http_timeout_s=0.3,
            node_cache_capable=True,
            managed_resources=(ManagedResource("example.com/gpu", True), ManagedResource("example.com/nic")),
            ignorable=True,
        ),
    )


def test_what_an_extender_counts_the_resource_filter_ignores_instead_of_its_own() -> None:
    """Upstream's buildExtenders assigns IgnoredResources, so the extenders' list replaces the plugin's list."""
    config = loaded(
        """
        profiles:
          - pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [example.com/a, example.com/gpu]}}]
        extenders:
          - urlPrefix: http://extender
            managedResources: [{name: example.com/gpu, ignoredByScheduler: true}, {name: example.com/nic}]
        """
    )
    fit = config.profiles[0].args("NodeResourcesFit")
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.ignored_resources == ("example.com/gpu",)
    [warning] = config.warnings
    assert (warning.path, warning.value) == ("$.extenders", "example.com/a")


def test_null_is_not_set() -> None:
    assert loaded("parallelism: null\nprofiles: ~\nextenders:\npercentageOfNodesToScore:\n") == default_config()


def test_json_is_read_too() -> None:
    text = (
        '{"apiVersion": "kubescheduler.config.k8s.io/v1",\n "kind": "KubeSchedulerConfiguration",\n "parallelism": 3}'
    )
    assert load_config(text, "it.json").parallelism == 3


def test_arguments_of_a_plugin_from_elsewhere_are_kept_as_written() -> None:
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"permit": {"enabled": [{"name": "Gang"}]}},
                "pluginConfig": [{"name": "Gang", "args": {"timeout": "30s", "deep": {"er": [1]}}}],
            }
        ],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, "Gang": PluginInfo(frozenset({"permit"}))})
    assert config.profiles[0].args("Gang") == RawArgs({"timeout": "30s", "deep": {"er": [1]}})
    assert config.profiles[0].args("NodeName") == RawArgs()


def test_odd_but_allowed_is_a_warning() -> None:
    config = loaded(
        """
        profiles:
          - plugins:
              filter: {enabled: [{name: NodeName, weight: 2}]}
              score: {disabled: [{name: NodeAfinity}, {name: SelectorSpread}]}
        percentageOfNodesToScore: 120
        """
    )
    assert config.percentage_of_nodes_to_score == 100
    assert [f"{one.line} {one.path}: {one.why}" for one in config.warnings] == [
        "6 $.profiles[0].plugins.filter.enabled[0].weight: a weight counts only at score and multiPoint",
        '7 $.profiles[0].plugins.score.disabled[0].name: no such plugin; did you mean "NodeAffinity"?',
        "8 $.percentageOfNodesToScore: counts as 100",
    ]


def test_all_faults_are_told_in_the_order_of_the_text() -> None:
    text = HEAD + textwrap.dedent(
        """\
        paralelism: 3
        parallelism: 0
        percentageOfNodesToScore: -120
        podInitialBackoffSeconds: 20
        podMaxBackoffSeconds: 10
        profiles:
          - schedulerName: a
            plugins:
              scores: {}
              score:
                enabled:
                  - name: NodeAffinity
                    weight: "2"
                  - name: NodeResourceFit
                disabled: NodeName
          - schedulerName: a
            percentageOfNodesToScore: -1
          - percentageOfNodesToScore: 1.5
        """
    )
    assert refusals(text) == [
        '3 $.paralelism: no such field; did you mean "parallelism"?',
        "4 $.parallelism: out of range",
        "5 $.percentageOfNodesToScore: out of range",
        "7 $.podMaxBackoffSeconds: must not be less than podInitialBackoffSeconds",
        '11 $.profiles[0].plugins.scores: no such field; did you mean "score"?',
        "15 $.profiles[0].plugins.score.enabled[0].weight: must be a whole number, not text",
        '16 $.profiles[0].plugins.score.enabled[1].name: no such plugin; did you mean "NodeResourcesFit"?',
        "17 $.profiles[0].plugins.score.disabled: must be a list, not text",
        "18 $.profiles[1].schedulerName: the same name as $.profiles[0]",
        "19 $.profiles[1].percentageOfNodesToScore: out of range",
        "20 $.profiles[2].schedulerName: a profile has no schedulerName, which only a single profile may leave out",
        "20 $.profiles[2].percentageOfNodesToScore: must be a whole number, not a number",
    ]


def test_a_fault_says_file_line_path_value_and_what_is_allowed() -> None:
    with pytest.raises(ConfigErrors) as refused:
        load_config(HEAD + "percentageOfNodesToScore: -20\n", "it.yaml")
    assert str(refused.value) == ("it.yaml:3: $.percentageOfNodesToScore: -20: out of range (allowed: 0 to 100)")


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        pytest.param("", "0 $: the file is empty: a configuration is required", id="empty"),
        pytest.param("# only words\n---\n", "0 $: the file is empty: a configuration is required", id="only-a-comment"),
        pytest.param("- a\n- b\n", "1 $: a configuration is a mapping", id="a-list"),
        pytest.param(
            "a: [1\nb: 2\n",
            "2 $: not YAML: did not find expected ',' or ']', while parsing a flow sequence",
            id="no-yaml",
        ),
        pytest.param(HEAD + "---\n" + HEAD, "4 $: more than one document, where one is expected", id="two"),
        pytest.param("kind: KubeSchedulerConfiguration\n", "1 $.apiVersion: required, but missing", id="no-version"),
        pytest.param(
            "kind: KubeSchedulerConfiguration\napiVersion: kubescheduler.config.k8s.io/v1beta9\n",
            "2 $.apiVersion: not supported",
            id="a-version-there-never-was",
        ),
        pytest.param(
            HEAD + "parallelism: 1\nparallelism: 2\n",
            '4 $.parallelism: the key "parallelism" occurs twice in one mapping',
            id="a-key-twice",
        ),
        pytest.param(
            HEAD + "parallelism: !!python/object:os.system x\n",
            "3 $.parallelism: unsupported tag",
            id="a-tag-makes-nothing",
        ),
    ],
)
def test_what_is_no_configuration_is_refused(text: str, refusal: str) -> None:
    assert refusals(text) == [refusal]


def test_aliases_that_never_end_are_refused() -> None:
    laughs = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    assert refusals("a: &a [*a]\n") == ["1 $.a[0]: the anchor contains itself"]
    (fault,) = refusals("a0: &a0 [x]\n" + laughs)
    assert "aliases of this document expand to more than" in fault


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        pytest.param(
            f"leaderElection: {{leaseDuration: {'9' * 400}s}}",
            "3 $.leaderElection.leaseDuration: not a duration",
            id="lease-longer-than-all-durations",
        ),
        pytest.param(
            "leaderElection: {leaseDuration: 5s}",
            "3 $.leaderElection.leaseDuration: must be longer than renewDeadline",
            id="lease-shorter-than-its-renewal",
        ),
        pytest.param(
            "leaderElection: {retryPeriod: 2 seconds}",
            "3 $.leaderElection.retryPeriod: not a duration",
            id="no-duration",
        ),
        pytest.param(
            "leaderElection: {resourceLock: endpoints}",
            "3 $.leaderElection.resourceLock: not supported",
            id="old-lock",
        ),
        pytest.param("clientConnection: {burst: -1}", "3 $.clientConnection.burst: out of range", id="burst"),
        pytest.param(
            "profiles: [{schedulerName: ''}]",
            "3 $.profiles[0].schedulerName: must not be empty",
            id="no-name",
        ),
        pytest.param("profiles: [7]", "3 $.profiles[0]: must be a mapping, not a whole number", id="no-profile"),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeName}, {name: NodeName}]}]",
            "3 $.profiles[0].pluginConfig[1].name: its arguments are given twice",
            id="arguments-twice",
        ),
        pytest.param(
            "profiles: [{pluginConfig: [{name: NodeResourceFit, args: {}}]}]",
            '3 $.profiles[0].pluginConfig[0].name: no such plugin; did you mean "NodeResourcesFit"?',
            id="arguments-for-nobody",
        ),
        pytest.param(
            "extenders: [{urlPrefix: 'http://a', prioritizeVerb: p}]",
            "3 $.extenders[0].weight: an extender with a prioritizeVerb needs a weight",
            id="extender-without-weight",
        ),
        pytest.param(
            "extenders: [{urlPrefix: 'http://a', bindVerb: b}, {urlPrefix: 'http://b', bindVerb: b}]",
            "3 $.extenders[1].bindVerb: only one extender can bind, and one before it does",
            id="two-extenders-bind",
        ),
        pytest.param(
            "extenders: [{urlPrefix: 'http://a', managedResources: [{name: cpu}]}]",
            "3 $.extenders[0].managedResources[0].name: not the name of an extended resource",
            id="extender-for-cpu",
        ),
        pytest.param(
            "extenders: [{urlPrefix: 'http://a', tlsConfig: {certFile: c}}]",
            "3 $.extenders[0].tlsConfig: a certificate and its key are needed together",
            id="certificate-without-key",
        ),
        *(
            pytest.param(
                f"extenders: [{{urlPrefix: '{url}'}}]",
                "3 $.extenders[0].urlPrefix: not an address that can be called",
                id=f"address-{url}",
            )
            for url in ("h:80", "ftp://h", "http://", "http://[::1", "https://h:x", "http://h:99999", "http://h:0/")
        ),
        pytest.param(
            "extenders: [{urlPrefix: 'http://a', httpTimeout: -5s}]",
            "3 $.extenders[0].httpTimeout: out of range",
            id="negative-timeout",
        ),
        pytest.param("extenders: [{}]", "3 $.extenders[0].urlPrefix: required, but missing", id="no-address"),
    ],
)
def test_bad_values_are_refused(body: str, refusal: str) -> None:
    assert refusals(HEAD + body) == [refusal]


def test_a_number_that_is_too_large_is_told_how_large_it_may_be() -> None:
    with pytest.raises(ConfigErrors, match=r"99999999999: out of range \(allowed: 1 to 2147483647\)"):
        loaded("parallelism: 99999999999")


def test_the_value_of_a_key_is_never_repeated() -> None:
    with pytest.raises(ConfigErrors) as refused:
        loaded("extenders: [{urlPrefix: 'http://a', tlsConfig: {keyData: not base64 secret}}]")
    assert "secret" not in str(refused.value)


def test_profiles_must_sort_the_one_queue_alike() -> None:
    catalogue = {**IN_TREE, "OtherSort": PluginInfo(frozenset({"queue_sort"}))}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": "a"},
            {
                "schedulerName": "b",
                "plugins": {"queueSort": {"enabled": [{"name": "OtherSort"}], "disabled": [{"name": "*"}]}},
            },
        ],
    }
    with pytest.raises(ConfigErrors) as refused:
        config_from_raw(raw, catalogue=catalogue)
    (error,) = refused.value.errors
    assert (error.path, error.value, error.allowed) == (
        "$.profiles[1].plugins.queueSort",
        "OtherSort",
        "PrioritySort",
    )


def test_feature_gates_are_checked() -> None:
    with pytest.raises(ConfigErrors) as refused:
        default_config(version=V1_34, feature_gates={"SchedulerPopFromBackofQ": False, "SchedulerQueueingHints": False})
    assert [error.why for error in refused.value.errors] == [
        'no such feature gate; did you mean "SchedulerPopFromBackoffQ"?',
        "the feature is finished and its gate locked",
    ]


def test_other_plugins_beside_the_in_tree_ones_count_where_they_share_a_name() -> None:
    mine, name = PluginInfo(frozenset({"filter"})), PluginInfo(frozenset({"score"}))
    others = {"Mine": mine, "NodeName": name}
    together = IN_TREE | others
    assert list(together) == list({**IN_TREE, **others})
    assert len(together) == len(IN_TREE) + 1
    assert together["Mine"] is mine
    assert together["NodeName"] is name
    assert together["NodePorts"] is IN_TREE["NodePorts"]
    assert "Nobody" not in together
    assert together.get("Nobody") is None


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("CPU", "cpu"),
        ("Memory", "memory"),
        ("gpu", "cpu, memory, ephemeral-storage, or a name with a domain"),
        ("nvidia.com/gpu", None),
        ("hugepages-2Mi", None),
        ("ephemeral-storage", None),
    ],
)
def test_a_resource_that_no_node_can_have_is_warned_of(name: str, instead: str | None) -> None:
    strategy = {"type": "LeastAllocated", "resources": [{"name": name, "weight": 1}]}
    args = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": args}],
    }
    warnings = load_config(json.dumps(raw), "config").warnings
    assert [(one.value, one.allowed) for one in warnings] == ([] if instead is None else [(name, instead)])
