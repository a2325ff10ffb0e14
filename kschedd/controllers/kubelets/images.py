"""The images of a node: its list grows with what runs there, up to what a node's status has room for.

The size of an image is what the pod's annotation or some node says of it; otherwise it is unknown, and the image
attracts no pods. Images that no pod uses are removed when the disk is short (`unused_removed`), and not before: there
are no thresholds for collecting them, as nobody knows here how full the disk is.

Source: Kubernetes v1.34, pkg/kubelet/nodestatus/setters.go (Images), kubelet_node_status.go (nodeStatusMaxImages).
Units: bytes.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kschedd.api.nodes import Node
from kschedd.api.objects import Raw
from kschedd.api.pods import Pod, image_name
from kschedd.api.simulation.annotations import pod_settings

MAX_IMAGES: Final = 50
_MOST_SIZES: Final = 4096  # of images that no node may list any more


def images_of(pod: Pod) -> dict[str, int]:
    """The images of a pod by name, with their sizes as the pod's annotations have them (0: they do not say)."""
    settings = pod_settings(pod.annotations)
    if not settings:
        return dict.fromkeys(pod.pod_spec.images, 0)
    spec = pod.pod_spec.raw
    found: dict[str, int] = {}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        size = settings.of("image-size", container.get("name") or "")
        found[image_name(container.get("image") or "")] = int(size or 0)
    return found


class ImageSizes:
    """The sizes of images that nodes report, or did not long ago, and which images a node has."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._most = _MOST_SIZES
        self._on_node: dict[str, frozenset[str]] = {}

    def note(self, old: Node | None, node: Node) -> None:
        """A node as it is now."""
        if node.name in self._on_node and old is not None and old.images == node.images:
            return
        self._on_node[node.name] = frozenset(name for name, _ in node.images)
        self._sizes.update({name: size for name, size in node.images if size})
        if len(self._sizes) > self._most:
            listed = frozenset().union(*self._on_node.values())
            self._sizes = {name: size for name, size in self._sizes.items() if name in listed}
            self._most = max(_MOST_SIZES, 2 * len(self._sizes))

    def forget(self, node_name: str) -> None:
        self._on_node.pop(node_name, None)

    def missing(self, node_name: str, pod: Pod) -> dict[str, int]:
        """The pod's images that the node does not list, with their sizes."""
        there = self._on_node.get(node_name, frozenset())
        if there.issuperset(pod.pod_spec.images):
            return {}
        return {
            name: size or self._sizes.get(name, 0)
            for name, size in images_of(pod).items()
            if name not in there and name != image_name("")
        }


def with_images(node: Node, new: Mapping[str, int]) -> list[Raw] | None:
    """The node's images, largest first, with new ones; None if nothing changes."""
    present: Sequence[Raw] = node.status.get("images") or ()
    there = {name for name, _ in node.images}
    added: list[dict[str, Any]] = []
    for name, size in new.items():
        if name not in there:
            added.append({"names": [name], "sizeBytes": size} if size else {"names": [name]})
    images = sorted([*present, *added], key=lambda image: -(image.get("sizeBytes") or 0))[:MAX_IMAGES]
    return None if len(images) == len(present) and images == list(present) else images


def unused_removed(node: Node, active: Collection[Pod]) -> list[Raw] | None:
    """The node's images without those that no active pod uses; None if all are used."""
    used = {name for pod in active for name in pod.pod_spec.images}
    present: Sequence[Raw] = node.status.get("images") or ()
    kept = [image for image in present if used.intersection(image_name(name) for name in image.get("names") or ())]
    return None if len(kept) == len(present) else kept
