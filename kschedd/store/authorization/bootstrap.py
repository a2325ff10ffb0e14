"""The default roles and bindings of kube-apiserver, read from `bootstrap_policy.txt`, which describes its format."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

RBAC: Final = "rbac.authorization.k8s.io"
ADMIN: Final = "cluster-admin"
"""The ClusterRole whose presence shows that a cluster has its own default policy."""
_AGGREGATE: Final = f"{RBAC}/aggregate-to-"
_OLDEST: Final = 34


def bootstrap_policy(features: frozenset[str]) -> Sequence[Mapping[str, Any]]:
    """Return the manifests of the default roles and bindings of the release that has these features."""
    release = _OLDEST
    while f"fields_of_1_{release + 1}" in features:
        release += 1
    return _policy_of(release)


@cache
def _policy_of(release: int) -> tuple[dict[str, Any], ...]:
    found: list[dict[str, Any]] = []
    skipping = False
    for line, words in _lines(release):
        if words[:1] == ["role"]:
            skipping = line is None
            if not skipping:
                found.append(_role(words[1:]))
        elif line is not None and words[0] == "binding":
            found.append(_binding(words[1:]))
        elif line is not None and not skipping:
            found[-1].setdefault("rules", []).append(_rule(line))
    return tuple(found)


def _lines(release: int) -> Iterator[tuple[str | None, list[str]]]:
    """Yield the lines, without the releases, and their words; the line is None if the release does not have it."""
    for line in Path(__file__).with_name("bootstrap_policy.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        words = line.split()
        since, dots, until = words[0].partition("..")
        if not dots:
            yield line.strip(), words
            continue
        there = int(since or _OLDEST) <= release <= int(until or release)
        yield line.strip().removeprefix(words[0]).strip() if there else None, words[1:]


def _named(kind: str, name: str, labels: Mapping[str, str] = {}) -> dict[str, Any]:
    namespace, slash, own = name.rpartition("/")
    metadata: dict[str, Any] = {"name": own, **({"namespace": namespace} if slash else {})}
    metadata["labels"] = {"kubernetes.io/bootstrapping": "rbac-defaults", **labels}
    metadata["annotations"] = {"rbac.authorization.kubernetes.io/autoupdate": "true"}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind if slash else f"Cluster{kind}", "metadata": metadata}


def _role(words: Sequence[str]) -> dict[str, Any]:
    options = dict(zip(words[1::2], words[2::2], strict=True))
    part = options.get("part-of")
    made = _named("Role", words[0], {f"{_AGGREGATE}{part}": "true"} if part else {})
    if summed := options.get("sum-of"):
        made["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {f"{_AGGREGATE}{summed}": "true"}}]}
    return made


def _rule(line: str) -> dict[str, list[str]]:
    verbs, at, paths = line.partition(" @ ")
    if at:
        return {"nonResourceURLs": paths.split(), "verbs": verbs.split()}
    parts = [part.split() for part in line.split(" : ")]
    groups = ["" if group == "core" else group for group in parts[1]]
    rule = {"apiGroups": groups, "resources": parts[2], "verbs": parts[0]}
    return {**rule, "resourceNames": parts[3]} if len(parts) > 3 else rule


def _binding(words: Sequence[str]) -> dict[str, Any]:
    name, role, *subjects = words
    made = _named("RoleBinding", name)
    kind = "Role" if "namespace" in made["metadata"] else "ClusterRole"
    made["roleRef"] = {"apiGroup": RBAC, "kind": kind, "name": made["metadata"]["name"] if role == "=" else role}
    if subjects:
        made["subjects"] = [_subject(text) for text in subjects]
    return made


def _subject(text: str) -> dict[str, str]:
    kind, _, name = text.partition(":")
    if kind == "serviceaccount":
        namespace, _, name = name.partition("/")
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"kind": kind.title(), "apiGroup": RBAC, "name": name}
