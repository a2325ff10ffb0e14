"""Made-up words for the words of a cluster: equal words get equal replacements, and the order is preserved.

Names are split at dashes, dots and slashes, because the name of a StatefulSet's pod contains the name of the set, and
the name of a claim contains both names. Numbers, UIDs of the usual form and names defined by Kubernetes are not
replaced.
"""

import re
import string
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import Any, Final

from kschedd.api.objects import Raw
from kschedd.api.schemas.kinds import KINDS

_KEPT_WORDS: Final = frozenset(
    (
        "default kube system public node lease scheduler critical cluster linux windows amd64 arm64 ppc64le s390x "
        "true false metadata name none"
    ).split()
)
_KEPT_KEYS: Final = frozenset(
    (
        "pod-template-hash controller-revision-hash pod-template-generation controller-uid job-name "
        "kubernetes orphan foregroundDeletion"
    ).split()
)
_SYSTEM: Final = re.compile(r"(^|[./])(kubernetes|k8s|kschedd)\.io(/|$)")
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_EXTENDED: Final = re.compile(r"-extended-resources-[0-9a-f]{5}$")
_OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"
_OF_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_ATTACHABLE: Final = "attachable-volumes-csi-"
_TAG: Final = re.compile(r"(@|:)[^/]*$")
_NATIVE: Final = re.compile(
    r"cpu|memory|storage|ephemeral-storage|pods|services|services\.(loadbalancers|nodeports)|replicationcontrollers"
    r"|resourcequotas|secrets|configmaps|persistentvolumeclaims|hugepages-[0-9]+[kMGTPE]?i?"
)
_BUILT_IN: Final = frozenset(f"{kind.plural}.{kind.group}".rstrip(".") for kind in KINDS)
_QUANTITY: Final = re.compile(r"[+-]?[0-9.]+([kKMGTPEmnu]i?|[eE][+-]?[0-9]+)?")
_NO_NAMES: Final = frozenset(
    (
        "as break const continue else false for function if import in let loop package namespace null return true var "
        "void while"
    ).split()
)
"""Words that CEL reserves, so that no attribute can be selected by them."""
_SIDES: Final = ("requests.", "limits.")
_DRIVERS: Final = frozenset(
    (
        "ebs.csi.aws.com disk.csi.azure.com file.csi.azure.com pd.csi.storage.gke.io cinder.csi.openstack.org "
        "csi.vsphere.vmware.com pxd.portworx.com"
    ).split()
)
"""CSI drivers that replace built-in volume plugins of Kubernetes."""


class MadeUpWords:
    """The mapping of words to made-up words.

    The mapping is built from all objects of a dump, because all words must be known before the first one is replaced.
    `resources`: also replace names of extended resources, of drivers and of kinds.
    """

    def __init__(self, objects: Iterable[Raw], dropped: frozenset[str], *, resources: bool) -> None:
        words: set[str] = set()
        for raw in objects:
            for text in _texts(raw, dropped):
                words.update(_WORD.findall(text))
        hidden = sorted(word for word in words if not is_kept(word))
        self._made_up = dict(zip(hidden, _made_up(len(hidden)), strict=True))
        self._known: dict[str, str] = {}
        self._resources = resources

    def text(self, text: str) -> str:
        """Return the text with the confidential words replaced by made-up words."""
        if _UID.fullmatch(text):
            return text
        found = self._known.get(text)
        if found is None:
            end = _EXTENDED.search(text)  # the suffix by which the scheduler recognizes a claim that it created
            rest = text[: end.start()] if end else text
            found = _WORD.sub(lambda word: self._made_up.get(word[0], word[0]), rest) + (end[0] if end else "")
            self._known[text] = found
        return found

    def key(self, key: str) -> str:
        """Return the new key of a label, a taint or a finalizer; keys defined by Kubernetes are not replaced."""
        return key if key in _KEPT_KEYS or _SYSTEM.search(key) or key.startswith("metadata.") else self.text(key)

    def driver(self, name: str) -> str:
        """Return the new name of a driver or provisioner; names of built-in volume plugins are not replaced."""
        if not self._resources or name in _DRIVERS or name.startswith("kubernetes.io/"):
            return name
        return self.text(name)

    def kind(self, name: str) -> str:
        """Return the name of a custom kind, or of its group."""
        return self.text(name) if self._resources else name

    def resource(self, name: str) -> str:
        """Return the new name of a resource; names of native resources are not replaced."""
        if name.startswith(_OF_CLASS):
            return _OF_CLASS + self.text(name.removeprefix(_OF_CLASS))
        if not self._resources or _NATIVE.fullmatch(name):
            return name
        for side in _SIDES:
            if name.startswith(side):
                return side + self.resource(name.removeprefix(side))
        if name.startswith(_ATTACHABLE):
            return _ATTACHABLE + self.driver(name.removeprefix(_ATTACHABLE))
        if _OF_STORAGE_CLASS in name:
            storage_class, mark, rest = name.partition(_OF_STORAGE_CLASS)
            return self.text(storage_class) + mark + self.resource(rest)
        counted = name.removeprefix("count/")
        if counted != name:
            return name if counted in _BUILT_IN else f"count/{self.text(counted)}"
        return name if _SYSTEM.search(name) else self.text(name)

    def image(self, image: str) -> str:
        """Return the new name of an image; it has a tag only if the old name had one, because no tag means `latest`."""
        tag = _TAG.search(image)
        repository = image[: tag.start()] if tag else image
        mark = f":{self.text(tag.group(0)[1:].replace(':', '-'))[:63]}" if tag else ""
        return self.text(repository) + mark


def _texts(value: Any, dropped: frozenset[str]) -> Iterator[str]:
    """Yield all texts and all keys of an object that might be replaced."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in dropped:
                yield str(key)
                yield from _texts(inner, dropped)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, dropped)
    elif isinstance(value, str) and not _UID.fullmatch(value):
        yield value


def is_kept(word: str) -> bool:
    """Return whether the word is never replaced."""
    return word.isdigit() or word in _KEPT_WORDS


def is_quantity(text: str) -> bool:
    """Return whether the text is a quantity, such as `100m` or `8Gi`."""
    return _QUANTITY.fullmatch(text) is not None


def _made_up(count: int) -> list[str]:
    """Return `count` words of equal length, in order, without words that are never replaced or that CEL reserves."""
    unusable = _KEPT_WORDS | _NO_NAMES
    width = 1
    while 26**width < count + len(unusable):
        width += 1
    words = ("".join(letters) for letters in product(string.ascii_lowercase, repeat=width))
    return list(islice((word for word in words if word not in unusable), count))
