"""A dump without what is anybody's business: made-up words in place of names, namespaces, labels, images and taints.

The same word becomes the same made-up one everywhere, and the made-up words sort as theirs do: so what refers to each
other still does, and what is decided stays the same. Names are taken apart at their dashes, dots and slashes, since a
StatefulSet's pod is called after its set, and a claim after both. Kept are numbers, quantities, times, uids, the names
of resources and drivers, label keys of Kubernetes itself, and the words of the API. Dropped are commands, environment,
probes, messages, addresses, annotations (but those that simulate), and the data of Secrets and ConfigMaps.

CEL expressions of device requests are kept as they are. What controllers make in one moment may come in another order.
"""

import re
import string
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kschedd.api.objects import Raw
from kschedd.dumps.marks import SECRET_FIELDS

_DROPPED: Final = frozenset(
    (
        "env envFrom command args lifecycle livenessProbe readinessProbe startupProbe securityContext workingDir "
        "terminationMessagePath message hostAliases dnsConfig imagePullSecrets containerStatuses podIP podIPs hostIP "
        "hostIPs initContainerStatuses ephemeralContainerStatuses addresses podCIDR podCIDRs providerID managedFields "
        "clusterIP clusterIPs externalIPs loadBalancer loadBalancerIP externalName selfLink "
        "volumeAttributes nodePublishSecretRef nodeStageSecretRef controllerPublishSecretRef parameters "
        "volumeMounts volumeDevices hostname subdomain setHostnameAsFQDN secrets secretName "
        "configMap secret projected downwardAPI"
    ).split()
)
_NAMES: Final = frozenset(
    (
        "name generateName namespace nodeName nominatedNodeName claimName volumeName priorityClassName "
        "storageClassName runtimeClassName serviceName serviceAccountName serviceAccount schedulerName pool "
        "deviceClassName resourceClaimName resourceClaimTemplateName persistentVolumeName handler "
        "volumeHandle currentRevision updateRevision holderIdentity podGroupName workloadName podGroupTemplateName "
        "request device counterSet containerName requestName"
    ).split()
)
_SELECTING: Final = frozenset(("labels", "matchLabels", "nodeSelector", "selector"))
_LISTS: Final = frozenset(("namespaces", "matchLabelKeys", "mismatchLabelKeys", "nodeNames", "requests"))
_EXPRESSIONS: Final = frozenset(("matchExpressions", "matchFields", "matchLabelExpressions", "taints", "tolerations"))
_KEPT_WORDS: Final = frozenset(
    (
        "default kube system public node lease scheduler critical cluster linux windows amd64 arm64 ppc64le s390x "
        "true false metadata name none"
    ).split()
)
_KEPT_KEYS: Final = frozenset(
    "pod-template-hash controller-revision-hash pod-template-generation controller-uid job-name".split()
)
_SYSTEM: Final = re.compile(r"(^|[./])(kubernetes|k8s|kschedd)\.io(/|$)")
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_EXTENDED: Final = re.compile(r"-extended-resources-[0-9a-f]{5}$")
_OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"
_TAG: Final = re.compile(r"(@|:)[^/]*$")


class Redaction:
    """Made of all objects of a dump, as every word must be known before the first is replaced."""

    def __init__(self, objects: Iterable[Raw]) -> None:
        words: set[str] = set()
        for raw in objects:
            for text in _texts(raw):
                words.update(_WORD.findall(text))
        hidden = sorted(word for word in words if not _is_kept(word))
        width = 1
        while 26**width < len(hidden):
            width += 1
        self._made_up = {word: _letters(number, width) for number, word in enumerate(hidden)}
        self._known: dict[str, str] = {}

    def redacted(self, raw: Raw) -> dict[str, Any]:
        hidden = SECRET_FIELDS.get(raw["kind"], ())
        done: dict[str, Any] = self._value({key: value for key, value in raw.items() if key not in hidden}, "")
        notes = {key: text for key, text in (raw["metadata"].get("annotations") or {}).items() if _simulates(key)}
        if notes:
            done["metadata"]["annotations"] = notes
        return done

    def value(self, value: Any) -> Any:
        """A part of an object, such as an affinity."""
        return self._value(value, "")

    def text(self, text: str) -> str:
        """The text with the made-up words in place of those that are hidden."""
        replaced: str = self._text(text)
        return replaced

    def keeps(self, word: str) -> bool:
        """Whether the word stays wherever it stands."""
        return _is_kept(word)

    def _value(self, value: Any, field: str) -> Any:
        if isinstance(value, Mapping):
            if field in _SELECTING and _has_texts(value):
                return {self._key(key): self._text(text) for key, text in value.items()}
            return {
                self._resource(key): self._field(key, inner)
                for key, inner in value.items()
                if key not in _DROPPED and key != "annotations"
            }
        if isinstance(value, list):
            return [self._value(item, field) for item in value]
        return value

    def _field(self, key: str, value: Any) -> Any:
        if key in _EXPRESSIONS and isinstance(value, list):
            return [self._expression(one) for one in value]
        if key in _NAMES and isinstance(value, str):
            return self._text(value)
        if key in ("image", "names") and isinstance(value, str | list):
            return self._image(value) if isinstance(value, str) else [self._image(one) for one in value]
        if key == "topologyKey" or key == "topologyKeys":
            return self._key(value) if isinstance(value, str) else [self._key(one) for one in value]
        if key == "resourceName" and isinstance(value, str):
            return self._resource(value)
        if key in _LISTS and isinstance(value, list) and all(isinstance(one, str) for one in value):
            turn = self._key if key.endswith("Keys") else self._text
            return [turn(one) for one in value]
        return self._value(value, key)

    def _expression(self, one: Any) -> Any:
        """A requirement of a selector, a taint or a toleration."""
        if not isinstance(one, Mapping):
            return one
        done = dict(one)
        if isinstance(one.get("key"), str):
            done["key"] = self._key(one["key"])
        if isinstance(one.get("value"), str):
            done["value"] = self._text(one["value"])
        if isinstance(one.get("values"), list):
            done["values"] = [self._text(text) for text in one["values"]]
        return done

    def _key(self, key: str) -> str:
        return key if key in _KEPT_KEYS or _SYSTEM.search(key) or key.startswith("metadata.") else self._text(key)

    def _resource(self, name: Any) -> Any:
        """The name of a resource, or of any field: only that of a DeviceClass is hidden."""
        if isinstance(name, str) and name.startswith(_OF_CLASS):
            return _OF_CLASS + self._text(name.removeprefix(_OF_CLASS))
        return name

    def _image(self, image: Any) -> Any:
        """Whether it has a tag stays: without one `latest` is meant."""
        if not isinstance(image, str):
            return image
        tag = _TAG.search(image)
        repository = image[: tag.start()] if tag else image
        mark = f":{self._text(tag.group(0)[1:].replace(':', '-'))[:63]}" if tag else ""
        return self._text(repository) + mark

    def _text(self, text: Any) -> Any:
        if not isinstance(text, str) or _UID.fullmatch(text):
            return text
        found = self._known.get(text)
        if found is None:
            end = _EXTENDED.search(text)  # by which the scheduler knows a claim that it has written
            rest = text[: end.start()] if end else text
            found = _WORD.sub(lambda word: self._made_up.get(word[0], word[0]), rest) + (end[0] if end else "")
            self._known[text] = found
        return found


def _texts(value: Any, field: str = "") -> Iterator[str]:
    """All text and all keys of an object that might be replaced."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in _DROPPED:
                if field in _SELECTING and _has_texts(value):
                    yield key
                yield from _texts(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, field)
    elif isinstance(value, str) and not _UID.fullmatch(value):
        yield value


def _has_texts(value: Mapping[Any, Any]) -> bool:
    """Labels, and not a selector of nodes with its terms."""
    return all(isinstance(text, str) for text in value.values())


def _is_kept(word: str) -> bool:
    return word.isdigit() or word in _KEPT_WORDS


def _letters(number: int, width: int) -> str:
    """The number in letters, of so many places: they sort as numbers do."""
    text = ""
    for _ in range(width):
        number, place = divmod(number, 26)
        text = string.ascii_lowercase[place] + text
    return text


def _simulates(key: str) -> bool:
    return key.startswith("kschedd.io/")


def redacted(objects: Iterable[Raw]) -> list[dict[str, Any]]:
    everything = list(objects)
    redaction = Redaction(everything)
    return [redaction.redacted(raw) for raw in everything]
