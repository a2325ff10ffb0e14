"""docs/LINT.md: the rules of `kschedd lint`, each with one example.

`python -m tests.lint.page > docs/LINT.md` writes the page.
"""

from collections.abc import Iterator, Sequence

from kschedd.lint.catalogue.all import RULES
from kschedd.lint.linting import NEWEST, OLDEST
from kschedd.lint.rules import PODS, LintRule
from tests.lint.lint_examples import examples

HEAD = f"""# Lint

`kschedd lint` finds fields that a Kubernetes release ignores or rejects, objects that contradict themselves, and
changes by an upgrade. For most findings, the API server rejects nothing: the field is dropped, or has another effect
than expected.

    kschedd lint -f deploy/                                  # files and folders
    kschedd lint -f deploy/ --kube-version 1.35              # for a cluster of another release ({OLDEST} to {NEWEST})
    kschedd lint -f deploy/ --upgrade-to 1.38                # and what an upgrade changes
    kschedd lint --from dump.json                            # a whole cluster; `kschedd load --how` says how to dump it
    kschedd lint -f deploy/ --from dump.json                 # manifests, compared with the nodes of a cluster
    kschedd config check -f scheduler.yaml --upgrade-to 1.37 # a scheduler configuration, by these rules as well

Files contain more than dumps: a field that the API server drops is not in a dump. Scripts and dashboards (`.sh`, `.py`,
`.md`, ConfigMaps, PrometheusRules) are searched for metrics and messages that a release renames. Helm values and other
YAML without a kind are skipped, and so are templates: render a chart first (`helm template CHART | kschedd lint -f -`).

| level | meaning |
|---|---|
| error | the object is rejected, or its pods never run |
| warning | the object has another effect than expected |
| note | advice, or a change that an upgrade causes |

The exit status is 0 without errors and warnings, 1 with errors or warnings, and 2 if an input is unusable. `-o json`,
`-o sarif` and `-o markdown` are for programs, code hosts and pull requests; [examples/ci](../examples/ci) contains a
workflow and a pre-commit hook. `--level warning` omits the notes.

A comment ignores a finding: `# kschedd: ignore=CODE` on its line, in the lines above it, or above the object's first
field for the whole object. `--ignore CODE,CODE` ignores codes everywhere.

## Files that are not current

Many repositories contain files for old clusters. If `-f` names a folder, such files below it are skipped. The summary
counts them by reason, and `--kept` includes them. A file that `-f` names itself is always linted.

- **in archives**: a folder `archive`, `archived`, `attic`, `deprecated`, `legacy`, `obsolete` or `old`, also in the
  form `_archived`, and names that end with such a word: `crds-legacy/`, `install-deprecated.yaml`.
- **of older versions**: a folder whose name contains a version, if there is a newer version beside it, such as
  `v4.8.0/` beside `v4.13.1/`, and likewise files: `v2_0_0_full.yaml` beside `v2_1_0_full.yaml`. Names such as `1.30` or
  `kubernetes-1.30` may be Kubernetes releases; a release after `--kube-version` does not replace an older one. A folder
  for a release before {OLDEST}, such as `kubernetes-1.14/`, is always skipped, but not `kubernetes-1.14+/`.
- **for old clusters**: the name contains the version of an object, and the release no longer serves this version or
  deprecates it, such as `crds-v1beta1/` or `hpa-v2beta2.yaml`; or the name is that of PodSecurityPolicies, such as
  `psp.yaml`. The same applies to all files of a folder in which a file requires a release before {OLDEST}:
  `kubernetesVersion: v1.24.0`, `yum install kubeadm-1.9.0`, `KUBERNETES_VERSION=1.19`, `--kubernetes-version=v1.20`,
  `kindest/node:v1.21.1`. If files require several releases, the newest one decides; subfolders are separate. A folder
  `web/` beside `web-1.21+/` is also for old clusters.
- **of tests**: a folder `test`, `tests`, `testing`, `e2e`, `testdata` or `fixtures`, and files such as `main_test.go`.
- **of builds or dependencies**: a folder `_site`, `node_modules`, `site-packages` or `vendor`.

Files in a folder `patches`, and the patches of a kustomization, are only parts of objects and are skipped.

## Rules about nodes

Rules about nodes have findings only if there are nodes: in the dump, or in the file itself. A class, claim or
PriorityClass counts as missing only in a dump that contains objects of that kind.
"""


def _kinds(rule: LintRule) -> str:
    return ", ".join("pods of all workloads" if kind == PODS else kind for kind in rule.kinds)


def _rule(rule: LintRule, example: str) -> Iterator[str]:
    yield f"### {rule.code}"
    yield ""
    yield f"This rule checks {_kinds(rule)}. Source: {rule.source}."
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
    yield "Each example causes a finding of its rule."
    yield ""
    for rule in rules:
        yield from _rule(rule, found[rule.code].bad)


if __name__ == "__main__":
    print("\n".join(lines()).rstrip())
