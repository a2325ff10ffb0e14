"""Tests of selectors that match no device: the corrected word, and the values of the devices."""

import pytest

from kschedd.api.objects import Object
from kschedd.causes.claimed.device_selectors import mended, told_values
from kschedd.devices.pools.inventory import Device, Slice

MODEL = 'device.attributes["gpu.example.com"].model == '


def devices() -> list[Device]:
    kinds = [("a100", "40Gi", 8), ("t4", "16Gi", 4)]
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": model,
                    "attributes": {"model": {"string": model}, "cores": {"int": cores}},
                    "capacity": {"memory": {"value": memory}},
                }
                for model, memory, cores in kinds
            ],
        },
    }
    return list(Slice.read(Object.from_raw(raw)).devices)


@pytest.mark.parametrize(
    ("selector", "was", "now"),
    [
        (f'{MODEL}"a-100"', "a-100", "a100"),
        ('device.attributes["gpu.example.com"].modle == "t4"', "modle", "model"),
        ('device.attributes["gpus.example.com"].model == "t4"', "gpus.example.com", "gpu.example.com"),
        ('device.driver == "gpu.exmaple.com"', "gpu.exmaple.com", "gpu.example.com"),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0', "80Gi", "40Gi"),
        ('device.attributes["gpu.example.com"].cores >= 16', "16", "8"),
    ],
)
def test_one_word_is_changed_to_what_a_device_has(selector: str, was: str, now: str) -> None:
    fix = mended(selector, devices())
    assert fix is not None
    assert (fix.was, fix.now) == (was, now)
    assert fix.text == selector.replace(was, now)


def test_nothing_is_proposed_that_selects_no_device() -> None:
    assert mended("false", devices()) is None


def test_values_of_the_named_attributes_are_told() -> None:
    assert told_values(f'{MODEL}"h100"', devices()) == ["model a100 or t4"]
    assert told_values('device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("80Gi"))', devices()) == [
        "memory 40Gi or 16Gi"
    ]
