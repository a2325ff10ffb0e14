"""docs/LINT.md: the rules of `kschedd lint`, each with one example.

`python -m tests.lint.page > docs/LINT.md` writes it anew.
"""

from collections.abc import Iterator, Sequence

from kschedd.lint.catalogue.all import RULES
from kschedd.lint.linting import NEWEST, OLDEST
from kschedd.lint.rules import PODS, LintRule
from tests.lint.lint_examples import examples

HEAD = f"""# Lint

`kschedd lint` finds what a Kubernetes release ignores or rejects, objects that contradict themselves, and what an
upgrade changes. Nothing is refused by the API server for most of it: the field is dropped, or does something else than
it seems to.

    kschedd lint -f deploy/                                  # files and folders
    kschedd lint -f deploy/ --kube-version 1.35              # for a cluster of another release ({OLDEST} to {NEWEST})
    kschedd lint -f deploy/ --upgrade-to 1.38                # and what an upgrade changes
    kschedd lint --from dump.json                            # a whole cluster; `kschedd load --how` says how to dump it
    kschedd lint -f deploy/ --from dump.json                 # manifests, compared with the nodes of a cluster
    kschedd config check -f scheduler.yaml --upgrade-to 1.37 # a scheduler configuration, by these rules as well

Files say more than dumps: a field that the API server drops is in no dump. Scripts and dashboards (`.sh`, `.py`, `.md`,
ConfigMaps, PrometheusRules) are looked at for metrics and messages that a release renames. Helm values and other YAML
without a kind are passed over, and so are templates: render a chart first (`helm template CHART | kschedd lint -f -`).

| level | meaning |
|---|---|
| error | the object is rejected, or its pods never run |
| warning | it does something else than it seems to |
| note | advice, or a change that an upgrade brings |

The exit status is 0 without errors and warnings, 1 with some, and 2 if an input is unusable. `-o json`, `-o sarif` and
`-o markdown` are for programs, code hosts and pull requests; [examples/ci](../examples/ci) has a workflow and a
pre-commit hook. `--level warning` leaves the notes out.

A comment ignores a finding: `# kschedd: ignore=CODE` on its line, in the lines above it, or above the object's first
field for the whole object. `--ignore CODE,CODE` ignores codes everywhere.

## Files that are kept beside the current ones

Repositories keep files for old clusters. Below a folder that `-f` names, these are passed over. The summary counts them
by reason, and `--kept` includes them. A file that `-f` names itself is always linted.

- **in archives**: a folder `archive`, `archived`, `attic`, `deprecated`, `legacy`, `obsolete` or `old`, also as
  `_archived`, or such an end of the name: `crds-legacy/`, `install-deprecated.yaml`.
- **of older versions**: a folder that is named for a version and has a newer version beside it, such as `v4.8.0/`
  beside `v4.13.1/`, and likewise files: `v2_0_0_full.yaml` beside `v2_1_0_full.yaml`. Names such as `1.30` or
  `kubernetes-1.30` may be Kubernetes releases; one after `--kube-version` does not replace an older one.
  `kubernetes-1.14/` is passed over even if it is the only one, as all before {OLDEST} are; `kubernetes-1.14+/` is not.
- **for old clusters**: the name has the version of an object, and the release does not serve this version any more or
  deprecates it, such as `crds-v1beta1/` or `hpa-v2beta2.yaml`; or it names PodSecurityPolicies, such as `psp.yaml`.
  Likewise all files of a folder in which a file pins a release before {OLDEST}: `kubernetesVersion: v1.24.0`,
  `yum install kubeadm-1.9.0`, `KUBERNETES_VERSION=1.19`, `--kubernetes-version=v1.20`, `kindest/node:v1.21.1`. The
  newest pin of the folder decides; subfolders are apart. And a folder `web/` beside `web-1.21+/`.
- **of tests**: a folder `test`, `tests`, `testing`, `e2e`, `testdata` or `fixtures`, and files such as `main_test.go`.
- **of builds or dependencies**: a folder `_site`, `node_modules`, `site-packages` or `vendor`.

Files in a folder `patches` are parts of objects, as the patches of a kustomization are, and are no input.

## Without nodes, and with them

Rules about nodes need nodes: those of the dump, or of the file itself. A class, claim or PriorityClass counts as
missing only in a dump that has objects of that kind.
"""


def _kinds(rule: LintRule) -> str:
    return ", ".join("pods of all workloads" if kind == PODS else kind for kind in rule.kinds)


def _rule(rule: LintRule, example: str) -> Iterator[str]:
    yield f"### {rule.code}"
    yield ""
    yield f"In {_kinds(rule)}. Source: {rule.source}."
    yield ""
    yield "| from release | level | what happens |"
    yield "|---|---|---|"
    for era in rule.eras:
        says = era.says.replace("{}", "…").replace("|", "\\|")
        yield f"| {era.since or 'all'} | {'' if era.level == 'fine' else era.level} | {says} |"
    yield ""
    yield rule.fix
    yield ""
    yield "```yaml"
    yield example.rstrip()
    yield "```"
    yield ""


def lines() -> Iterator[str]:
    """Yield the page."""
    yield HEAD
    found = {each.code: each for each in examples()}
    rules: Sequence[LintRule] = sorted(RULES, key=lambda rule: rule.code)
    yield f"## The {len(rules)} rules"
    yield ""
    yield "Each example has a finding."
    yield ""
    for rule in rules:
        yield from _rule(rule, found[rule.code].bad)


if __name__ == "__main__":
    print("\n".join(lines()).rstrip())
