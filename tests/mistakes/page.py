"""docs/CAUSES.md: the codes of causes, each with one example from the corpus.

`python -m tests.mistakes.page > docs/CAUSES.md` generates it.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from tests.mistakes.asking import answer
from tests.mistakes.mistake_files import FOLDER, mistakes
from tests.pages import DOCS
from tests.reference.markdown import cell

#: codes that no file of the corpus shows
OTHERS = {
    "AdmissionPolicyRefuses": "A ValidatingAdmissionPolicy refuses the pods.",
    "CreationRefused": "The API server refuses the pods for another reason, which is given.",
    "CronJobSuspended": "The CronJob is suspended.",
    "DiskInUse": "A disk that the pods name themselves serves one pod on a node, and others use it.",
    "DrainWaitsForPods": "Pods that were evicted from the node have not ended: a finalizer, or their grace period.",
    "EvictedSoon": "A pod is evicted in a while, since it tolerates a NoExecute taint for a limited time.",
    "HeldBack": "A PreEnqueue plugin keeps the pod out of the queue.",
    "NoNodes": "The cluster has no nodes.",
    "NoPods": "The workload has no pods, and wants none now.",
    "NodeLabelMissing": "No node has the label that the workload requires, nor one like it.",
    "NodeTainted": "The node takes only pods that tolerate its taints.",
    "Rejected": "No cause with a name was found; the message is the scheduler's.",
    "SchedulingStopped": "The pod fits, and scheduling is stopped by the debugger.",
    "PodDeleted": "The pod is gone, and nothing preempted or evicted it.",
    "PodEvicted": "The pod is gone: it was evicted, by a drain, the kubelet or for a taint.",
    "PodPreempted": "The pod is gone: another one of higher priority preempted it.",
    "PodGroupLacksPods": "A PodGroup needs more pods at once than there are.",
    "PodGroupLacksRoom": "By itself the pod would fit; not as many pods of its PodGroup do as this needs at once.",
    "PodGroupMissing": "The pods name a PodGroup that does not exist.",
    "WebhookRefuses": "An admission webhook refuses the pods.",
}
KINDS = {
    "change-workload": "changes the workload itself: its template, replicas or strategy",
    "replace-workload": "deletes and creates the workload, whose template cannot be changed",
    "replace-pod": "deletes one pod, for which its controller makes a different one",
    "replace-object": "deletes and creates an object that cannot be changed, such as a claim",
    "add-object": "creates what is missing, such as a node like those that are there",
    "change-object": "changes another object, such as a quota",
    "change-other-workload": "changes another workload, which is in the way",
    "change-node": "changes nodes, such as uncordoning them",
    "workaround": "none of the above helps; this does, and is not what a person would choose first",
}


def sentences() -> Mapping[str, str]:
    """Return each code in the corpus with a sentence."""
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    section = page.partition("\n## Codes\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE))


@cache
def shown() -> Mapping[tuple[str, str], str]:
    """Return the cause that docs/CAUSES.md shows for a code and a file of the corpus."""
    page = (DOCS / "CAUSES.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .+ \| \[.+\]\(\.\./examples/mistakes/(\S+)\): (.+) \|$", page, re.MULTILINE)
    return {(code, file): text for code, file, text in rows}


def examples() -> Mapping[str, tuple[str, str]]:
    """Return by code the name of a file of the corpus, and the cause that `explain` states for it."""
    found: dict[str, tuple[str, str]] = {}
    corpus = mistakes()
    wanted = [(each, {each.expect.code}) for each in corpus] + [(each, set(each.expect.also)) for each in corpus]
    for mistake, codes in wanted:
        new = codes - found.keys()
        if new:
            reported = answer(mistake, mistake.build())
            for cause in (reported["cause"], *reported["also"]):
                if cause["code"] in new:
                    found[cause["code"]] = mistake.file.name, cause["message"]
    return found


def lines() -> Iterator[str]:
    """Yield the page."""
    yield from """# Causes

`kschedd explain KIND/NAME` begins with the cause in one sentence, its evidence, and remedies that were verified with
the whole workload. `-o json` prints the same information for programs:

| field | content |
|---|---|
| `cause` | `{code, message, objects[], fields[], evidence[]}`; the codes are below |
| `also` | further causes; each alone would keep the workload from its nodes |
| `confidence` | `certain`, or `likely` if other causes are possible |
| `remedies[]` | the best first: `{rank, summary, kind, target, commands[], manifest_diff, changes[], verified, \
scheduled, displaced[]}` |
| `tried[]` | remedies that were tried and did not help, with the reason |
| `blocking_nodes[]` | nodes grouped by the plugin that rejects them and its reason |

`commands[]` are shell commands; they call kubectl if the cluster is elsewhere (`--from DUMP`), otherwise kschedd.
`kschedd explain --pending -A` groups all pending pods by cause, with one remedy for each of the five largest groups. A
cluster in a dump needs no daemon: `kschedd explain --from DUMP KIND/NAME`.

## Kinds of remedies

| kind | effect |
|---|---|""".splitlines()
    yield from (f"| `{kind}` | {what} |" for kind, what in KINDS.items())
    yield from """
## Codes

Each example shows the output of `explain` for a file in [examples/mistakes](../examples/mistakes/README.md).

| code | cause | example |
|---|---|---|""".splitlines()
    examples_by_code = examples()
    for code, sentence in sorted(sentences().items()):
        file, message = examples_by_code[code]
        name = file.removesuffix(".yaml")
        yield f"| `{code}` | {sentence} | [{name}](../examples/mistakes/{file}): {cell(message)} |"
    yield from """
Further codes:

| code | cause |
|---|---|""".splitlines()
    yield from (f"| `{code}` | {sentence} |" for code, sentence in sorted(OTHERS.items()))


if __name__ == "__main__":
    print("\n".join(lines()))
