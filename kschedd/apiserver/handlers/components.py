"""The resource componentstatuses, which is deprecated.

Source: Kubernetes v1.34, pkg/registry/core/componentstatus.
"""

from typing import Final

from kschedd.apiserver.codec.bodies import warning_headers
from kschedd.apiserver.codec.negotiation import json_response, wanted_form
from kschedd.apiserver.codec.status import StatusError
from kschedd.apiserver.requests import ApiCall
from kschedd.apiserver.services import FaceServices
from kschedd.http.server import HttpResponse
from kschedd.service.operations.components import component_statuses as listed_statuses

_DEPRECATED: Final = "v1 ComponentStatus is deprecated in v1.19+"


def component_statuses(face: FaceServices, call: ApiCall) -> HttpResponse:
    from kschedd.apiserver.catalogue.tables import component_table

    wanted = call.target.name
    form = wanted_form(call.headers.get("accept", ""), single=bool(wanted))
    found = [each.raw for each in listed_statuses() if wanted in ("", each.name)]
    headers = warning_headers((_DEPRECATED,))
    if wanted and not found:
        details = {"name": wanted, "kind": "componentstatuses"}
        raise StatusError(404, "NotFound", f'componentstatuses "{wanted}" not found', details)
    if form.shape == "Table":
        return json_response(component_table(found, form.version), form=form, headers=headers)
    if wanted:
        return json_response(found[0], form=form, headers=headers)
    listed = {"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": found}
    return json_response(listed, form=form, headers=headers)
