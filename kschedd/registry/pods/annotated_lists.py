"""Lists of taints and tolerations as JSON in annotations, which older Kubernetes versions used instead of fields.

Source: Kubernetes v1.34, pkg/apis/core/helper (GetTolerationsFromPodAnnotations, GetTaintsFromNodeAnnotations); Go
1.24, encoding/json.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.unmarshal_errors import json_kind
from kschedd.api.text.json_errors import json_error
from kschedd.api.text.json_text import json_value

Raw = dict[str, Any]

# Field -> its Go type. All but one are strings.
_TYPES: Final[Mapping[str, str]] = {
    "key": "string",
    "value": "string",
    "operator": "core.TolerationOperator",
    "effect": "core.TaintEffect",
    "tolerationSeconds": "int64",
}


def annotated_list(text: str, struct: str) -> tuple[list[Raw], str]:
    """Return the list of structs (Taint or Toleration) in an annotation, and the error if the list cannot be parsed."""
    if wrong := json_error(text):
        return [], wrong
    try:
        found = json_value(text)
    except ValueError as refusal:  # raised if an integer is too long for Python's parser
        return [], str(refusal)
    if found is not None and not isinstance(found, list):
        return [], f"json: cannot unmarshal {json_kind(found)} into Go value of type []core.{struct}"
    items = [{} if item is None else item for item in found or ()]
    for item in items:
        if not isinstance(item, dict):
            return [], f"json: cannot unmarshal {json_kind(item)} into Go value of type core.{struct}"
        for field, kind in _TYPES.items():
            value = item.get(field)
            if value is not None and type(value) is not (int if kind == "int64" else str):
                name = f"{struct}.{field[0].upper()}{field[1:]}"
                return [], f"json: cannot unmarshal {json_kind(value)} into Go struct field {name} of type {kind}"
    return items, ""
