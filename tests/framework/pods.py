"""Pods for tests of plugin calls."""

from kschedd.api.objects import parse
from kschedd.api.pods import Pod


def make_pod(name: str) -> Pod:
    made = parse({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "uid": f"uid-of-{name}"}, "spec": {}})
    assert isinstance(made, Pod)
    return made
