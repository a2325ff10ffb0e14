"""Output formats `yaml`, `json` and `name`, which are the same as kubectl's."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kschedd.api.schemas.kinds import kind_of
from kschedd.printing.terminal.safe import exact, has_commands

Raw = Mapping[str, Any]


def as_json(value: Any) -> str:
    return exact(json.dumps(value, indent=4, ensure_ascii=False, default=str)) + "\n"


def as_yaml(value: Any) -> str:
    """Return YAML with its keys in alphabetical order, so that two outputs can be compared."""
    import yaml

    class Dumper(yaml.CSafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_representer(str, _text)
    return exact(yaml.dump(value, Dumper=Dumper, default_flow_style=False, allow_unicode=True, width=120))


def _text(dumper: Any, text: str) -> Any:
    style = '"' if has_commands(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def listing(items: Sequence[Raw]) -> dict[str, Any]:
    """Return several objects as one `List`, as kubectl does."""
    return {"apiVersion": "v1", "kind": "List", "items": list(items), "metadata": {"resourceVersion": ""}}


def name(raw: Raw) -> str:
    """Return `pod/web` or `deployment.apps/web`."""
    return f"{kind_of(raw).resource}/{(raw.get('metadata') or {}).get('name', '')}"
