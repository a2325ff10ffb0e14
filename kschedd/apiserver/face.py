"""The REST API: handles every request from its bytes to its answer.

Requests without a resource (discovery, OpenAPI, health, version) are answered here. Requests for resources are passed
on to reading, watching, writing and the subresources. An error becomes a Status. The catalogue of resources is updated
from the definitions of custom resources.

Owns: the catalogue, and the documents generated from it.  Uses: the cluster, through `FaceServices`.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import attrs
import trio

from kschedd.access.audit_log import AuditLog
from kschedd.access.requests import AccessRequest
from kschedd.access.users import User
from kschedd.api.objects import Object
from kschedd.apiserver import discovery
from kschedd.apiserver.access import (
    Access,
    bearer_token,
    check_allowed,
    forbidden,
    unauthorized,
)
from kschedd.apiserver.auditing import audited
from kschedd.apiserver.catalogue import openapi
from kschedd.apiserver.catalogue.local_services import API_SERVICE, local_services
from kschedd.apiserver.catalogue.resources import Catalogue, built_in, defined_versions, metrics_version
from kschedd.apiserver.codec.bodies import warning_headers
from kschedd.apiserver.codec.negotiation import (
    JSON,
    Form,
    clauses,
    encode,
    json_response,
    takes_gzip,
    text_response,
    wanted_form,
)
from kschedd.apiserver.codec.status import (
    StatusError,
    failure,
    method_not_allowed,
    not_found_path,
    of_events_group,
    of_resource,
    of_storage,
    refusal_of,
)
from kschedd.apiserver.handlers.components import component_statuses
from kschedd.apiserver.handlers.issuer import CONFIGURATION, KEYS, issuer_document, keys_document
from kschedd.apiserver.handlers.metrics import metrics_of
from kschedd.apiserver.handlers.reading import find, get_object, list_all
from kschedd.apiserver.handlers.reviews import REVIEWS, review
from kschedd.apiserver.handlers.scheduler_metrics import metrics_page, pod_resources_page
from kschedd.apiserver.handlers.subresources import bind, serve_subresource
from kschedd.apiserver.handlers.watching import watch
from kschedd.apiserver.handlers.writing import create, delete, delete_collection, patch, update
from kschedd.apiserver.impersonation import as_node, impersonation_modes
from kschedd.apiserver.requests import ApiCall, Query, RequestInfo, access_request, find_target, split_target
from kschedd.apiserver.services import FaceServices
from kschedd.errors import KscheddError
from kschedd.http.protocol import HttpFault, HttpRequest
from kschedd.http.server import HttpResponse, Peer
from kschedd.store.cluster_api import ClusterReader, ClusterWriter
from kschedd.store.creating.service_addresses import SERVICE_RANGE, networks_of
from kschedd.store.custom_resources import kinds as custom
from kschedd.store.errors import Mirrored, NotFound
from kschedd.threads import in_thread

_OWN_SERVICE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    },
}
_CONSTRAINED: Final = 36  # first minor release with constrained impersonation by default
_EVENTS: Final = 1_000  # events processed at once
_ENDPOINTS_DEPRECATED: Final = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_STORAGE: Final = "journal"
_ALIVE: Final = ("ping", "log", _STORAGE)
_CHECKS: Final = {"healthz": _ALIVE, "livez": _ALIVE, "readyz": (*_ALIVE, "informer-sync", "shutdown")}


@attrs.frozen(eq=False)
class _Document:
    """A document that clients request repeatedly, and its ETag."""

    body: bytes
    etag: str
    content_type: str = JSON


class ApiFace:
    """The handler of the REST API. Calling the handler with a request returns the answer."""

    def __init__(
        self,
        services: FaceServices,
        access: Access,
        version: str,
        service_range: str = SERVICE_RANGE,
        audit: AuditLog | None = None,
    ) -> None:
        self._audit = audit
        self.services = services
        self._access = attrs.evolve(access, account_of=services.tokens.user_of)
        self._version = version
        self._own_address = str(next(iter(networks_of(service_range).values()))[1])
        self._catalogue = Catalogue(built_in())
        self._listed = self._catalogue  # catalogue that discovery lists
        self._documents: dict[str, _Document] = {}

    async def __call__(self, request: HttpRequest, peer: Peer) -> HttpResponse:
        if self._audit is None or request.method in ("GET", "HEAD"):
            return await self._answered(request, peer, {})
        return await audited(self._audit, self._access, request, peer, self._answered)

    async def _answered(self, request: HttpRequest, peer: Peer, annotations: dict[str, str]) -> HttpResponse:
        """Return the answer to a request; add the annotations of its audit event."""
        try:
            return await self._answer(request, peer, annotations)
        except KscheddError as error:
            path, _, query = request.target.decode("latin-1").partition("?")
            refusal = of_storage(refusal_of(error), path, dry_run="dryRun=All" in query)
            if request.target.startswith(b"/apis/events.k8s.io/"):
                refusal = of_events_group(refusal)
            return refused(refusal)

    def admits(self, request: HttpRequest, peer: Peer) -> str | None:
        """Return the user name of a request; None if the request is rejected because of its headers."""
        try:
            _, _, user = self._identified(request, peer)
        except StatusError:
            return None
        return user.by or user.name

    def _identified(self, request: HttpRequest, peer: Peer) -> tuple[str, Query, User]:
        path, query = split_target(request.target)
        user = self._access.user_of(request, peer)
        if user.read_only:
            check_allowed(access_request(request.method, path, query, user))
        return path, query, user

    async def _authorized(self, request: HttpRequest, peer: Peer) -> tuple[str, Query, User]:
        path, query, user = self._identified(request, peer)
        claims = self.services.tokens.claims_of(bearer_token(request))
        if claims is not None and not await self.services.is_bound(claims):
            raise unauthorized()
        if user.impersonated and (by := self._access.authenticated(request, peer)).judged:
            user = await self._impersonated(request, access_request(request.method, path, query, by), user)
        if user.judged:
            refused = await self.services.first_refused([access_request(request.method, path, query, user)])
            if refused is not None:
                raise forbidden(*refused)
        return path, query, user

    async def _impersonated(self, request: HttpRequest, wanted: AccessRequest, user: User) -> User:
        """Return the impersonated user; `wanted` is the request with the real user as its author.

        Raises StatusError.
        """
        first: tuple[AccessRequest, str] | None = None
        for mode in impersonation_modes(
            request.headers, wanted, constrained=self.services.served.minor >= _CONSTRAINED
        ):
            refused = await self.services.first_refused(mode.needed)
            if refused is None and mode.denied:
                refused = mode.needed[-1], mode.denied
            if refused is None:
                return as_node(user) if mode.node else user
            first = first or refused
        assert first is not None, "the last mode applies to every impersonation"
        raise forbidden(*first)

    def explain(self, fault: HttpFault) -> HttpResponse:
        """Return the answer to a request that cannot be parsed."""
        reasons = {413: "RequestEntityTooLarge", 503: "ServiceUnavailable", 500: "InternalError", 408: "Timeout"}
        status = failure(fault.status, reasons.get(fault.status, "BadRequest"), fault.why)
        return HttpResponse(fault.status, (("Content-Type", JSON),), encode(status) + b"\n")

    async def _answer(self, request: HttpRequest, peer: Peer, annotations: dict[str, str]) -> HttpResponse:
        path, query, user = await self._authorized(request, peer)
        parts = [part for part in path.split("/") if part]
        if (parts[:1] == ["api"] and len(parts) > 2) or (parts[:1] == ["apis"] and len(parts) > 3):
            version = parts[1] if parts[0] == "api" else f"{parts[1]}/{parts[2]}"
            if self._catalogue.version(version) is None:
                if parts[0] == "apis" and not self._catalogue.of_group(parts[1]):
                    return _no_page()
                raise not_found_path()
            target = self._target(request, path, query)
            return await self._resource(ApiCall(request, peer, target, query, user, annotations=annotations))
        return await self._other(request, path, query, parts)

    async def register(self) -> None:
        """Create the Service through which the pods of every cluster find their API server."""

        def registered(store: ClusterWriter) -> None:
            if store.find("Service", "default", "kubernetes") is None:
                address = {"clusterIP": self._own_address, "clusterIPs": [self._own_address]}
                with suppress(Mirrored, NotFound):  # a mirror already contains all objects, including namespaces
                    store.create({**_OWN_SERVICE, "spec": {**_OWN_SERVICE["spec"], **address}})

        await self.services.cluster.store.do(registered)

    async def follow(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Update the catalogue from the definitions of custom resources and share watches, until the cluster ends."""
        watch = await self.services.cluster.store.watch({custom.DEFINITION})
        await self._refresh()
        async with trio.open_nursery() as nursery:
            await nursery.start(self.services.groups.run)
            task_status.started()
            try:
                while await watch.wait():
                    changed = False
                    while watch.behind:
                        changed |= bool(watch.take(_EVENTS))
                        await trio.lowlevel.checkpoint()
                    if changed:
                        await self._refresh()
            finally:
                watch.close()
            nursery.cancel_scope.cancel()

    async def _refresh(self) -> None:
        definitions, simulated = await self.services.cluster.store.do(_what_is_served)
        versions = [*built_in(), *defined_versions(definitions)]
        self._catalogue = Catalogue([*versions, metrics_version()])
        self._listed = self._catalogue if simulated else Catalogue(versions)
        self._documents.clear()

    # Resources

    def _target(self, request: HttpRequest, path: str, query: Query) -> RequestInfo:
        if request.method == "HEAD":
            raise method_not_allowed()
        return find_target(request.method, path, query, self._catalogue)

    async def _resource(self, call: ApiCall) -> HttpResponse:
        target = call.target
        if (target.resource.group, target.resource.name) == ("", "endpoints"):
            call.warnings.append(_ENDPOINTS_DEPRECATED)
        try:
            answer = await self._serve(call)
        except KscheddError as error:
            refusal = of_resource(refusal_of(error), target.resource.name, target.resource.group)
            raise attrs.evolve(refusal, headers=(*refusal.headers, *warning_headers(call.warnings))) from None
        if call.warnings:
            return attrs.evolve(answer, headers=(*answer.headers, *warning_headers(call.warnings)))
        return answer

    async def _serve(self, call: ApiCall) -> HttpResponse:
        target, services = call.target, self.services
        if target.resource.name in REVIEWS:
            return await review(services, call)
        if target.resource.group == "metrics.k8s.io":
            return await metrics_of(services, call)
        if target.resource.name == "componentstatuses":
            return component_statuses(services, call)
        if target.resource.name == "bindings":
            return await bind(services, call)
        if target.subresource:
            return await serve_subresource(services, call)
        answer = await self._verb(call)
        if target.resource.stored == custom.DEFINITION and target.verb not in ("get", "list", "watch"):
            await self._refresh()  # the client can then use its definition immediately
        return answer

    async def _verb(self, call: ApiCall) -> HttpResponse:
        services = self.services
        match call.target.verb:
            case "get":
                return await self._get(call)
            case "list":
                return await list_all(services, call, await self._computed(call))
            case "watch":
                return await watch(services, call)
            case "create":
                return await create(services, call)
            case "update":
                return await update(services, call)
            case "patch":
                return await patch(services, call)
            case "delete":
                return await delete(services, call)
        return await delete_collection(services, call)

    async def _get(self, call: ApiCall) -> HttpResponse:
        wanted_form(call.headers.get("accept", ""), single=True)
        return await get_object(self.services, call, await find(self.services, call, await self._computed(call)))

    async def _computed(self, call: ApiCall) -> Sequence[Object]:
        """Return the objects of the kind that are computed and not stored: the APIServices of this API server."""
        if call.target.resource.stored != API_SERVICE:
            return ()
        first = await self.services.cluster.store.do(lambda store: store.find("Namespace", "", "default"))
        since = "" if first is None else first.metadata.get("creationTimestamp") or ""
        return tuple(local_services(self._listed, since))

    # Requests without a resource

    async def _other(self, request: HttpRequest, path: str, query: Query, parts: list[str]) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        start = f"/{parts[0]}" if parts else "/"
        if start in _HEALTH:
            return await self._health(query, parts)
        if path.rstrip("/") == "/version":
            return json_response(self.services.served.document(self._version))
        if start in ("/api", "/apis"):
            return self._discovery(request, parts)
        if start == "/openapi":
            return await in_thread(partial(self._openapi, request, parts))  # about 1 MB each, created once
        if parts == CONFIGURATION:
            return issuer_document(request.headers.get("host", ""))
        if parts == KEYS:
            return keys_document()
        if parts == ["metrics"]:
            return await metrics_page(self.services)
        if parts == ["metrics", "resources"]:
            return await pod_resources_page(self.services)
        if not parts:
            return self._document(request, "/", lambda: {"paths": self._root()})
        return _no_page()

    async def _health(self, query: Query, parts: list[str]) -> HttpResponse:
        """Answer `/readyz`, `/livez` and `/healthz`, or one of their checks; `verbose` lists the checks."""
        failing = await self.services.cluster.store.condition()
        endpoint, check = parts[0], "/".join(parts[1:])
        checks = _CHECKS[endpoint]
        if check:
            if check not in checks:
                return _no_page()
            checks = (check,)
        excluded = [name.strip() for name in query.text("exclude").split(",")]
        checks = tuple(name for name in checks if name not in excluded)
        failed = failing is not None and endpoint == "readyz" and _STORAGE in checks
        if failed:
            lines = [f"[-]{name} failed: {failing}" if name == _STORAGE else f"[+]{name} ok" for name in checks]
            return text_response("\n".join([*lines, f"{endpoint} check failed\n"]), 500)
        if "verbose" in query:
            return text_response("\n".join([*(f"[+]{name} ok" for name in checks), f"{endpoint} check passed\n"]))
        return text_response("ok")

    def _root(self) -> list[str]:
        paths = ["/api", "/api/v1", "/apis", "/apis/", *_HEALTH, "/metrics", "/openapi/v2", "/openapi/v3"]
        paths += [f"/{'/'.join(parts)}" for parts in (CONFIGURATION, KEYS)]
        for version in self._listed.versions:
            if version.group:
                paths += [f"/apis/{version.group}", f"/apis/{version.name}"]
        return sorted({*paths, "/version"})

    def _discovery(self, request: HttpRequest, parts: list[str]) -> HttpResponse:
        catalogue = self._listed
        host = request.headers.get("host", "")
        if len(parts) == 1:
            core = parts[0] == "api"
            if discovery.wants_aggregated(request.headers.get("accept", "")):
                key = f"aggregated {parts[0]}"
                return self._document(
                    request,
                    key,
                    lambda: discovery.aggregated(catalogue, core=core),
                    discovery.AGGREGATED,
                )
            if core:
                return json_response(discovery.versions_document(host))
            return self._document(request, "/apis", lambda: discovery.groups_document(catalogue))
        name = parts[1] if parts[0] == "api" else "/".join(parts[1:])
        version = catalogue.version(name)
        if version is not None and (version.group == "") is (parts[0] == "api"):
            found = version
            return self._document(request, f"resources {name}", lambda: discovery.resources_document(found))
        if parts[0] == "apis" and len(parts) == 2 and catalogue.of_group(parts[1]):
            return self._document(request, f"group {name}", lambda: discovery.group_document(parts[1], catalogue))
        return _no_page()

    def _openapi(self, request: HttpRequest, parts: list[str]) -> HttpResponse:
        catalogue, served = self._listed, self.services.served
        if parts[1:] == ["v2"]:
            wanted = [media for media, _ in clauses(request.headers.get("accept", "") or "*/*")]
            if wanted[:1] and wanted[0] in openapi.V2_PROTOBUF_ASKED:
                body = openapi.protobuf_v2(served)
                return self._sent(request, _Document(body, openapi.etag_of(body), openapi.V2_PROTOBUF))
            return self._document(request, "openapi v2", lambda: openapi.document_v2(catalogue, served))
        if parts[1:] == ["v3"]:
            return self._document(request, "openapi v3", self._index)
        if parts[1:2] == ["v3"]:
            path = "/".join(parts[2:])
            for version in catalogue.versions:
                if openapi.path_of(version) == path:
                    return self._document(request, f"openapi {path}", partial(openapi.document, version, served))
        return _no_page()

    def _index(self) -> dict[str, Any]:
        etags = {}
        for version in self._listed.versions:
            path = openapi.path_of(version)
            etags[path] = self._made(f"openapi {path}", partial(openapi.document, version, self.services.served)).etag
        return openapi.index(etags)

    def _document(
        self, request: HttpRequest, key: str, make: Callable[[], dict[str, Any]], content_type: str = JSON
    ) -> HttpResponse:
        return self._sent(request, self._made(key, make, content_type))

    def _made(self, key: str, make: Callable[[], dict[str, Any]], content_type: str = JSON) -> _Document:
        known = self._documents.get(key)
        if known is None:
            body = encode(make()) + b"\n"
            known = self._documents[key] = _Document(body, openapi.etag_of(body), content_type)
        return known

    def _sent(self, request: HttpRequest, document: _Document) -> HttpResponse:
        """Return the document, or 304 if the client already has it."""
        etag = f'"{document.etag}"'
        headers = [("Etag", etag), ("Cache-Control", "public"), ("Vary", "Accept")]
        call = request.headers.get("if-none-match", "")
        if etag in (each.strip().removeprefix("W/") for each in call.split(",")) or call.strip() == "*":
            return HttpResponse(304, headers)
        headers.append(("Content-Type", document.content_type))
        if takes_gzip(request.headers) and len(document.body) > 8192:
            import gzip

            body = gzip.compress(document.body, 1, mtime=0)
            return HttpResponse(200, [*headers, ("Content-Encoding", "gzip")], body)
        return HttpResponse(200, headers, document.body)


def _what_is_served(store: ClusterReader) -> tuple[list[Object], bool]:
    """Return the definitions, including those being deleted, whose objects still exist, and whether pods are simulated.

    The usage of simulated pods is listed in discovery.
    """
    return custom.definitions(store), store.pod_behavior is not None


def _no_page() -> HttpResponse:
    return text_response("404 page not found\n", 404)


def refused(refusal: StatusError) -> HttpResponse:
    """Return the response with the Status for an error."""
    status = failure(refusal.code, refusal.reason, refusal.message, refusal.details, refusal.metadata)
    return json_response(status, refusal.code, form=Form(), headers=refusal.headers)
