"""Writing the status of a workload: counts of 0 are left out, as the API's types do with `omitempty`."""

from collections.abc import Collection, Mapping
from typing import Any

from kschedd.api.objects import Object
from kschedd.store.writes import Write, status_of


def status_write(obj: Object, status: Mapping[str, Any], always: Collection[str] = ()) -> list[Write]:
    """The patch that gives the object this status, if it differs; fields in `always` are stated even where they are 0.

    Fields that `status` does not have stay as they are.
    """
    wanted = {name: value if value or name in always else None for name, value in status.items()}
    present = obj.status
    return [status_of(obj, wanted)] if any(present.get(name) != value for name, value in wanted.items()) else []
