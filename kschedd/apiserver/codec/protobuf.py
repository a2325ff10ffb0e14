"""Protobuf bodies of requests, decoded into the same objects as JSON bodies.

kubectl sends a few commands only in protobuf: an envelope (runtime.Unknown, after the bytes `k8s` and 0) that names the
kind, and the object in the encoding of its Go type. `protobuf.json` beside this module contains the field numbers of
each type. `3: "status core.v1.PodStatus"` declares field 3, named `status`, which is a message of type
PodStatus. Before a type, `[` means a list and `{` a map with string keys. Scalar types are `s` (text), `b` (bytes), `i`
(integer), `o` (boolean) and `d` (double). The name `~` means that the message's fields are inlined into the object.

The encoding writes non-pointer fields even if they are empty, so empty values are omitted, as in JSON. Pointers are
kept, because they represent an explicit zero. Source: Kubernetes v1.34, the generated.proto of each API group;
apimachinery/pkg/runtime/serializer/protobuf. Raises: ProtobufError.
"""

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.api.text.times import stamp
from kschedd.errors import KscheddError

MAGIC: Final = b"k8s\x00"
_DEEPEST: Final = 64
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

#: Integers and booleans that are pointers in Go: a zero in the message is stored as an explicit value.
_POINTERS: Final = frozenset(
    "replicas minReplicas revisionHistoryLimit progressDeadlineSeconds parallelism completions activeDeadlineSeconds"
    " backoffLimit backoffLimitPerIndex maxFailedIndexes ttlSecondsAfterFinished suspend manualSelector"
    " startingDeadlineSeconds successfulJobsHistoryLimit failedJobsHistoryLimit gracePeriodSeconds orphanDependents"
    " deletionGracePeriodSeconds terminationGracePeriodSeconds automountServiceAccountToken shareProcessNamespace"
    " enableServiceLinks hostUsers setHostnameAsFQDN priority runAsUser runAsGroup runAsNonRoot fsGroup privileged"
    " allowPrivilegeEscalation readOnlyRootFilesystem optional defaultMode mode allocateLoadBalancerNodePorts"
    " expirationSeconds immutable controller blockOwnerDeletion allowVolumeExpansion attachRequired podInfoOnMount"
    " storageCapacity tolerationSeconds minDomains timeoutSeconds partition force leaseDurationSeconds leaseTransitions"
    " targetCPUUtilizationPercentage averageUtilization stabilizationWindowSeconds requiresRepublish seLinuxMount"
    " ready serving terminating allNodes perDeviceNodeSelection".split()
)
#: Fields that are encoded even if their value is "" or 0.
_ALWAYS: Final = frozenset(
    (
        ("scheduling.v1.PriorityClass", "value"),
        ("autoscaling.v1.ScaleSpec", "replicas"),
        (
            "core.v1.PersistentVolumeClaimSpec",
            "storageClassName",
        ),  # a pointer: "" means no class, not the default class
    )
)


@attrs.define(eq=False)
class ProtobufError(KscheddError):
    why: str


def decode_protobuf(data: bytes) -> Any:
    """Return the object in an envelope, with its kind and apiVersion; None for an empty body."""
    if not data:
        return None
    if not data.startswith(MAGIC):
        raise ProtobufError("the body is no protobuf message of Kubernetes: its first bytes are not k8s\\0")
    api_version = kind = ""
    body = b""
    for number, wire, value in _fields(data[len(MAGIC) :]):
        if wire != _BYTES:
            continue
        if number == 1:
            for inner, inner_wire, text in _fields(value):
                if inner_wire == _BYTES and inner == 1:
                    api_version = _text(text)
                elif inner_wire == _BYTES and inner == 2:
                    kind = _text(text)
        elif number == 2:
            body = value
    name = kinds().get(f"{api_version} {kind}")
    if name is None and kind == "DeleteOptions":
        name = "meta.v1.DeleteOptions"
    if name is None:
        raise ProtobufError(f'no kind "{kind[:100]}" is registered for version "{api_version[:100]}" in protobuf')
    return {"kind": kind, "apiVersion": api_version, **_message(name, body, 0)}


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = json.loads(
        Path(__file__).with_name("protobuf.json").read_text(encoding="utf-8")
    )
    return found


def kinds() -> Mapping[str, str]:
    """Return the map from `VERSION KIND` to the name of the kind's message."""
    return _tables()["kinds"]


@cache
def numbers(name: str) -> Mapping[int, tuple[str, str]]:
    """Return the fields of a message by number, with name and type in the notation described in the module."""
    listed = _tables()["messages"][name]
    return {int(number): (text.split(" ")[0], text.split(" ")[1]) for number, text in listed.items()}


def _fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield (number, wire type, value) of each field of a message."""
    at, size = 0, len(data)
    while at < size:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
        elif wire == _BYTES:
            length, at = _varint(data, at)
            if at + length > size:
                raise ProtobufError("unexpected EOF")
            yield number, wire, data[at : at + length]
            at += length
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
            if at + length > size:
                raise ProtobufError("unexpected EOF")
            yield number, wire, data[at : at + length]
            at += length
        else:
            raise ProtobufError(f"proto: illegal wireType {wire}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise ProtobufError("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift >= 64:
            raise ProtobufError("proto: integer overflow")


def _message(name: str, data: bytes, depth: int) -> Any:
    special = _SPECIAL.get(name)
    if special is not None:
        return special(data)
    if depth > _DEEPEST:
        raise ProtobufError("nested too deeply")
    found: dict[str, Any] = {}
    known_fields = numbers(name)
    for number, wire, value in _fields(data):
        known = known_fields.get(number)
        if known is None:
            continue
        field, typed = known
        if typed[0] == "[":
            item = _value(typed[1:], wire, value, depth)
            found.setdefault(field, []).append(item)
        elif typed[0] == "{":
            key, item = _entry(typed[1:], value, depth)
            found.setdefault(field, {})[key] = item
        else:
            item = _value(typed, wire, value, depth)
            if field == "~":
                found.update(item)
            elif item not in (None, "", 0, False) or field in _POINTERS or (name, field) in _ALWAYS:
                found[field] = item
    if known_fields == {1: ("items", "[s")}:
        return found.get("items", [])  # a named list of strings
    return found


def _value(typed: str, wire: int, value: Any, depth: int) -> Any:
    if typed == "i" or typed == "o":
        if wire != _VARINT:
            raise ProtobufError(f"proto: wrong wireType = {wire}")
        if typed == "o":
            return bool(value)
        return value - (1 << 64) if value >= 1 << 63 else value
    if typed == "d":
        if wire != _FIXED64:
            raise ProtobufError(f"proto: wrong wireType = {wire}")
        return struct.unpack("<d", value)[0]
    if wire != _BYTES:
        raise ProtobufError(f"proto: wrong wireType = {wire}")
    if typed == "s":
        return _text(value)
    if typed == "b":
        return base64.b64encode(value).decode()
    return _message(typed, value, depth + 1)


def _entry(typed: str, data: Any, depth: int) -> tuple[str, Any]:
    if not isinstance(data, bytes):
        raise ProtobufError("proto: wrong wireType for a map")
    key, value = "", _EMPTY.get(typed)
    if value is None:
        value = _message(typed, b"", depth + 1)
    for number, wire, item in _fields(data):
        if number == 1 and wire == _BYTES:
            key = _text(item)
        elif number == 2:
            value = _value(typed, wire, item, depth)
    return key, value


_EMPTY: Final[Mapping[str, Any]] = {"s": "", "b": "", "i": 0, "o": False, "d": 0.0}


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtobufError("a text is not UTF-8") from None


def _own(data: bytes) -> dict[int, Any]:
    return {number: value for number, _, value in _fields(data)}


def _signed(value: Any) -> int:
    if not isinstance(value, int):
        return 0
    return value - (1 << 64) if value >= 1 << 63 else value


def _time(data: bytes) -> Any:
    own = _own(data)
    if not own:
        return None
    return _stamped(_signed(own.get(1, 0)))


def _stamped(at: int) -> str:
    try:
        return stamp(float(at))
    except (ValueError, OverflowError, OSError):
        raise ProtobufError("a time is out of range") from None


def _micro_time(data: bytes) -> Any:
    own = _own(data)
    if not own:
        return None
    micros = _signed(own.get(2, 0)) // 1000
    return f"{_stamped(_signed(own.get(1, 0))).removesuffix('Z')}.{micros:06d}Z"


def _quantity(data: bytes) -> Any:
    value = _own(data).get(1, b"")
    return _text(value) if isinstance(value, bytes) and value else "0"


def _int_or_string(data: bytes) -> Any:
    own = _own(data)
    if own.get(1):
        text = own.get(3, b"")
        return _text(text) if isinstance(text, bytes) else ""
    number = _signed(own.get(2, 0))
    return number if -(2**31) <= number < 2**31 else (number + 2**31) % 2**32 - 2**31


def _raw(data: bytes) -> Any:
    value = _own(data).get(1, b"")
    try:
        return json.loads(value) if value else None
    except (ValueError, TypeError, RecursionError):
        raise ProtobufError("an embedded object is no JSON") from None


def _duration(data: bytes) -> Any:
    nanos = _signed(_own(data).get(1, 0))
    seconds = nanos / 1e9
    return f"{seconds:g}s" if nanos else None


_SPECIAL: Final[Mapping[str, Any]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "meta.v1.Duration": _duration,
    "api.resource.Quantity": _quantity,
    "util.intstr.IntOrString": _int_or_string,
    "runtime.RawExtension": _raw,
    "meta.v1.FieldsV1": _raw,
}
