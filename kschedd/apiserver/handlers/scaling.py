"""The scale subresource over HTTP, as a Scale or as a table with one row.

Source: Kubernetes v1.34, pkg/registry/apps/*/storage.
Raises: StatusError, and the errors of the store.
"""

from typing import Any

from kschedd.apiserver.catalogue.tables import scale_table
from kschedd.apiserver.codec.bodies import Body, checked_kind
from kschedd.apiserver.codec.negotiation import json_response, wanted_form
from kschedd.apiserver.codec.status import internal_error
from kschedd.apiserver.handlers.reading import find
from kschedd.apiserver.handlers.writing import check_options, patch_request, read_object, request_of, serve
from kschedd.apiserver.requests import ApiCall
from kschedd.apiserver.services import FaceServices
from kschedd.http.server import HttpResponse
from kschedd.service.request import Request
from kschedd.store.creating.scales import BUILT_IN, paths_of, scale_of
from kschedd.store.custom_resources.scale import integer_at

_SCALE = ("autoscaling/v1", "Scale", "autoscaling")


async def serve_scale(face: FaceServices, call: ApiCall) -> HttpResponse:
    target = call.target
    form = wanted_form(call.headers.get("accept", ""), single=True)
    reads = target.verb == "get"
    found = await find(face, call) if reads else (await serve(face, call, await _request(face, call))).object
    paths = await face.cluster.store.do(lambda store: paths_of(store, found, target.resource.api_version))
    scale: dict[str, Any] = scale_of(found, paths)
    if reads and paths is not BUILT_IN and integer_at(found.raw, paths.replicas) is None:
        raise internal_error(f'the spec replicas field "{paths.replicas}" does not exist')
    if reads and form.shape == "Table":
        return json_response(scale_table(scale, face.now(), form.version), form=form)
    return json_response(scale, form=form, request_headers=call.headers)


async def _request(face: FaceServices, call: ApiCall) -> Request:
    if call.target.verb == "patch":
        request = await patch_request(face, call, "scale")
        if request.verb == "apply":
            checked_kind(Body(call.http.body, request.body), *_SCALE)
        return request
    check_options(call)
    raw, duplicates = await read_object(face, call, *_SCALE)
    return request_of(call, "update", raw, "scale", duplicates)
