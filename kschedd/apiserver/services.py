"""The services shared by all requests: the cluster, its clock, fair slots and slices, and cached encodings."""

from collections.abc import Collection, Sequence
from typing import Final

import attrs

from kschedd.access.requests import AccessRequest
from kschedd.apiserver.catalogue.version import OF_DEFAULT, ServedVersion
from kschedd.apiserver.codec.encoding import Encoder
from kschedd.apiserver.requests import ApiCall
from kschedd.apiserver.tokens import API_AUDIENCES, Claims, Tokens, signing_key
from kschedd.apiserver.watch_groups import WatchGroups
from kschedd.service.cluster import ClusterBackend
from kschedd.service.execution import Executor
from kschedd.service.workers import FairShares
from kschedd.store.cluster_api import ClusterReader

LARGE_BODY: Final = 64 << 10  # size in bytes above which requests are processed in a thread


@attrs.define(eq=False)
class FaceServices:
    """The services that all requests share."""

    cluster: ClusterBackend
    served: ServedVersion = OF_DEFAULT
    kubelets: bool = True  # true if kubelets are simulated; otherwise the request cannot query a kubelet
    shares: FairShares = attrs.field(factory=FairShares)
    encoder: Encoder = attrs.field(factory=Encoder)
    groups: WatchGroups = attrs.field(factory=WatchGroups)
    key: bytes = attrs.field(factory=lambda: signing_key(None), repr=False)  # signs tokens of ServiceAccounts
    tokens: Tokens = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tokens = Tokens(self.now, self.key)

    def now(self) -> float:
        return self.cluster.clock.now()

    async def valid_claims(self, token: str, audiences: Collection[str] = API_AUDIENCES) -> Claims | None:
        """Return the content of a valid token of a ServiceAccount that exists; None for other tokens."""
        claims = self.tokens.claims_of(token, audiences)
        return claims if claims is not None and await self.is_bound(claims) else None

    async def is_bound(self, claims: Claims) -> bool:
        """Return whether the account of a token exists, and so does the object to which the token is bound."""
        return await self.cluster.store.do(lambda store: claims.is_bound(store, self.now()))

    async def first_refused(self, requests: Sequence[AccessRequest]) -> tuple[AccessRequest, str] | None:
        """Return the first request that RBAC objects do not allow, with the reason; None if they allow all."""

        def judged(store: ClusterReader) -> tuple[AccessRequest, str] | None:
            for request in requests:
                decision = store.rbac.judge(request)
                if not decision.allowed:
                    return request, decision.reason
            return None

        return await self.cluster.store.do(judged)

    def executor(self, call: ApiCall) -> Executor:
        """Return the executor of a client's requests."""
        large = len(call.http.body) > LARGE_BODY
        return Executor(self.cluster, self.shares.workers, call.client, call.target.verb, call.user, large)
