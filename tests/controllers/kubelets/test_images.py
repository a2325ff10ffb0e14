"""Tests of the image sizes that kubelets store."""

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.controllers.kubelets.images import ImageSizes


def node(name: str, *images: str) -> Node:
    listed = [{"names": [image], "sizeBytes": 1000 + number} for number, image in enumerate(images)]
    meta = {"name": name}
    found = Node.from_raw({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"images": listed}})
    assert isinstance(found, Node)
    return found


def pod(image: str) -> Pod:
    spec = {"containers": [{"name": "c", "image": image}]}
    return Pod.from_raw({"kind": "Pod", "metadata": {"name": "p", "namespace": "red"}, "spec": spec})


def test_sizes_of_images_that_no_node_lists_are_known_for_a_while_and_no_longer() -> None:
    sizes = ImageSizes()
    sizes.note(None, node("stays", "app:1", "app:2"))
    for number in range(4000):
        sizes.note(None, node(f"n{number}", f"other:{number}"))
        sizes.forget(f"n{number}")
    assert sizes.missing("new", pod("other:0")) == {"other:0": 1000}
    for number in range(4000, 5000):
        sizes.note(None, node(f"n{number}", f"other:{number}"))
        sizes.forget(f"n{number}")
    assert sizes.missing("new", pod("other:0")) == {"other:0": 0}
    assert sizes.missing("new", pod("other:4999")) == {"other:4999": 1000}
    assert sizes.missing("new", pod("app:2")) == {"app:2": 1001}
