"""What all requests of the face share: the cluster, its clock, fair slots and slices, and remembered encodings."""

from typing import Final

import attrs

from kschedd.apiserver.catalogue.version import OF_DEFAULT, ServedVersion
from kschedd.apiserver.codec.encoding import Encoder
from kschedd.apiserver.requests import Asked
from kschedd.apiserver.tokens import Tokens
from kschedd.apiserver.watch_groups import WatchGroups
from kschedd.service.cluster import ClusterBackend
from kschedd.service.execution import Executor
from kschedd.service.workers import FairShares

LARGE_BODY: Final = 64 << 10  # bytes: such a request is worked on beside the loop


@attrs.define(eq=False)
class FaceServices:
    """See the module."""

    cluster: ClusterBackend
    served: ServedVersion = OF_DEFAULT
    kubelets: bool = True  # simulated here; else nobody can be asked for what a kubelet knows
    shares: FairShares = attrs.field(factory=FairShares)
    encoder: Encoder = attrs.field(factory=Encoder)
    groups: WatchGroups = attrs.field(factory=WatchGroups)
    tokens: Tokens = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tokens = Tokens(self.now)

    def now(self) -> float:
        return self.cluster.clock.now()

    def executor(self, asked: Asked) -> Executor:
        """Return where the requests of a client are executed."""
        large = len(asked.http.body) > LARGE_BODY
        return Executor(self.cluster, self.shares.workers, asked.client, asked.target.verb, asked.user, large)
