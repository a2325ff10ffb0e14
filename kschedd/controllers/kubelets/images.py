"""The images of a node: pods add their images to the node's list, up to the limit of a node's status.

The size of an image comes from an annotation of the pod, or from a node that lists the image. If neither gives the
size, ImageLocality ignores the image. Unused images are removed only under disk pressure (`unused_removed`). There are
no thresholds for image garbage collection, because the usage of the disk is unknown.

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
_MOST_SIZES: Final = 4096  # largest number of stored sizes of images that no node lists any more


def images_of(pod: Pod) -> dict[str, int]:
    """Return the images of a pod by name, with their sizes from the pod's annotations (0: unknown)."""
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
    """The sizes of images that nodes report or have recently reported, and the images of each node."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._most = _MOST_SIZES
        self._on_node: dict[str, frozenset[str]] = {}

    def note(self, old: Node | None, node: Node) -> None:
        """Record the images of a node."""
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
        """Return the pod's images that the node does not list, with their sizes."""
        there = self._on_node.get(node_name, frozenset())
        if there.issuperset(pod.pod_spec.images):
            return {}
        return {
            name: size or self._sizes.get(name, 0)
            for name, size in images_of(pod).items()
            if name not in there and name != image_name("")
        }


def with_images(node: Node, new: Mapping[str, int]) -> list[Raw] | None:
    """Return the node's images with the new images added, largest first, or None if nothing changes."""
    present: Sequence[Raw] = node.status.get("images") or ()
    there = {name for name, _ in node.images}
    added: list[dict[str, Any]] = []
    for name, size in new.items():
        if name not in there:
            added.append({"names": [name], "sizeBytes": size} if size else {"names": [name]})
    images = sorted([*present, *added], key=lambda image: -(image.get("sizeBytes") or 0))[:MAX_IMAGES]
    return None if len(images) == len(present) and images == list(present) else images


def unused_removed(node: Node, active: Collection[Pod]) -> list[Raw] | None:
    """Return the node's images that an active pod uses, or None if all of them are used."""
    used = {name for pod in active for name in pod.pod_spec.images}
    present: Sequence[Raw] = node.status.get("images") or ()
    kept = [image for image in present if used.intersection(image_name(name) for name in image.get("names") or ())]
    return None if len(kept) == len(present) else kept
