"""Tests that harmful commands are recognized, and that no fix of a mistake file does harm that the file forbids."""

import pytest

from tests.mistakes.harms import harms
from tests.mistakes.mistake_files import FOLDER, Step, load, mistakes

VOLUME = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\n"
CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\n"


@pytest.mark.parametrize(
    ("command", "given", "found"),
    [
        ("label node general-1 node-pool=genral --overwrite", "", {"relabel-node"}),
        ("kubectl label nodes/general-1 node-pool=genral", "", {"relabel-node"}),
        ('patch node general-1 -p \'{"metadata": {"labels": {"node-pool": "genral"}}}\'', "", {"relabel-node"}),
        ("taint node memory-1 dedicated=memory:NoSchedule-", "", {"remove-taint"}),
        ("taint nodes memory-1 dedicated-", "", {"remove-taint"}),
        ("taint node memory-1 dedicated=memory:NoSchedule", "", set()),
        ('patch node a --subresource=status -p \'{"status": {"capacity": {"cpu": "99"}}}\'', "", {"patch-capacity"}),
        ("delete pod checkout-1 -n shop", "", {"delete-pod"}),
        ("delete pod/checkout-1 -n shop --force", "", {"delete-pod", "force-delete-pod"}),
        ("delete node general-1", "", {"delete-node"}),
        ("delete pvc data", "", {"delete-claim", "replace-object"}),
        ("delete pv v", "", {"delete-volume"}),
        ("delete pdb web", "", {"delete-budget"}),
        ("apply", VOLUME, {"create-volume"}),
        ("create -f -", VOLUME, {"create-volume"}),
        ("apply", CLAIM, set()),
        ("scale deployment checkout -n shop --replicas=1", "", set()),
        ("scale deployment/checkout -n shop --replicas=1", "", set()),
        ("scale deployment other -n shop --replicas=1", "", {"move-other-workload"}),
        ("rollout restart deployment/checkout -n shop", "", {"restart-workload"}),
        ("drain general-1", "", {"move-other-workload"}),
        ("label namespace shop pod-security.kubernetes.io/enforce=privileged", "", {"relax-namespace"}),
        ("patch csinode general-1 --type=json -p '[]'", "", {"change-csinode"}),
        (
            'patch deployment checkout -p \'{"spec": {"template": {"spec": {"tolerations": [{"key": "gpu"}]}}}}\'',
            "",
            {"tolerate-other-taint"},
        ),
        (
            'patch deploy checkout -p \'{"spec": {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}}}\'',
            "",
            {"tolerate-other-taint"},
        ),
        ("uncordon general-1", "", set()),
    ],
)
def test_harm_is_recognized(command: str, given: str, found: set[str]) -> None:
    mistake = load(FOLDER / "node-selector-value-misspelled.yaml")
    assert harms(mistake, Step(command, given)) == found


def test_no_fix_does_what_its_file_forbids() -> None:
    done = {
        mistake.file.stem: {name for step in mistake.fix for name in harms(mistake, step)} & set(mistake.expect.never)
        for mistake in mistakes()
    }
    assert {name: harm for name, harm in done.items() if harm} == {}


def test_the_toleration_of_the_fix_is_no_harm() -> None:
    mistake = load(FOLDER / "toleration-missing.yaml")
    assert harms(mistake, mistake.fix[0]) == set()
