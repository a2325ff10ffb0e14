"""Tests of suggestions for similar names."""

import pytest

from kschedd.causes.near import nearest


@pytest.mark.parametrize(
    ("word", "names", "meant"),
    [
        ("gpu.example.com/x", ["big.example.com/x"], None),
        ("example.com/fpga", ["nvidia.com/gpu"], None),
        ("nvidia.com/gpus", ["nvidia.com/gpu"], "nvidia.com/gpu"),
        ("nvdia.com/gpu", ["nvidia.com/gpu", "amd.com/gpu"], "nvidia.com/gpu"),
        ("gpu.exmaple.com", ["gpu.example.com", "fpga.example.com"], "gpu.example.com"),
        ("defualt-scheduler", ["default-scheduler"], "default-scheduler"),
        ("gp2-imediate", ["gp2-immediate", "gp3"], "gp2-immediate"),
        ("sdd", ["hdd", "ssd"], "ssd"),
        ("hdd", ["ssd"], None),
        ("gp2", ["gp3"], None),
        ("ab", ["ac"], None),
        ("kubernetes.io/host", ["beta.kubernetes.io/os", "kubernetes.io/hostname"], "kubernetes.io/hostname"),
        ("kubernetes.io/host", ["beta.kubernetes.io/os"], None),
    ],
)
def test_the_name_that_may_be_meant(word: str, names: list[str], meant: str | None) -> None:
    assert nearest(word, names) == meant
