"""What taking a dump and saving one agree on: annotations that are taken away again, data that is not kept."""

from collections.abc import Mapping, Sequence
from typing import Final

MADE_UP: Final = "kschedd.io/made-up"
"""Of an object that others refer to and the dump did not have; such are not saved."""

KUBELET: Final = "kschedd.io/kubelet"
"""Of a node from which nothing was heard: `stopped`."""

SECRET_FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "Secret": ("data", "stringData"),
    "ConfigMap": ("data", "binaryData"),
}
"""The fields that are dropped unless asked for, by kind."""
