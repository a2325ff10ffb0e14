"""Copies: fast creation of pods and nodes that differ only in name from an earlier object of the same request."""

from collections.abc import Iterator
from contextlib import contextmanager

from kschedd.api.nodes import Node
from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.store.admission.request import RequestAdmission
from kschedd.store.objects.log import ADDED
from kschedd.store.objects.stored import StoredObjects
from kschedd.store.prototypes.generated import Generated
from kschedd.store.prototypes.nodes import NodePrototype, NodePrototypes
from kschedd.store.prototypes.pod_strategy import PodStrategy
from kschedd.store.prototypes.pods import PodPrototype, PodPrototypes
from kschedd.store.reader import StoreReader


class Copies:
    """The prototypes of one batch request, from which copies are created."""

    def __init__(
        self,
        store: StoreReader,
        objects: StoredObjects,
        admission: RequestAdmission,
        pod_strategy: PodStrategy,
        generated: Generated,
    ) -> None:
        self._store = store
        self._objects = objects
        self._admission = admission
        self._pod_strategy = pod_strategy
        self._generated = generated
        self._pods: PodPrototypes | None = None  # prototypes of pods; None outside a batch request
        self._nodes: NodePrototypes | None = None  # prototypes of nodes; None outside a batch request

    @contextmanager
    def one_request(self) -> Iterator[None]:
        """Execute the writes inside the context as one request.

        The caller must not modify the manifests of the writes inside the context.
        """
        pods, nodes = self._pods, self._nodes
        self._pods, self._nodes = pods or PodPrototypes(), nodes or NodePrototypes()
        try:
            yield
        finally:
            self._pods, self._nodes = pods, nodes

    def forget(self, *, nodes: bool = False) -> None:
        """Drop the prototypes of pods (and of nodes), because an equal manifest may now create a different object."""
        if self._pods is not None:
            self._pods.clear()
        if nodes and self._nodes is not None:
            self._nodes.clear()

    def of(self, raw: Raw) -> Object | None:
        """Create a copy if the manifest differs from an earlier manifest of this request only in the name.

        Else return None.
        """
        kind = raw.get("kind")
        if kind == "Pod" and self._pods is not None:
            prototype = self._pods.of(raw)
            return None if prototype is None else self._pod(prototype, raw)
        if kind == "Node" and self._nodes is not None:
            of_node = self._nodes.of(raw)
            return None if of_node is None else self._node(of_node, raw)
        return None

    def add(self, made: Object, raw: Raw) -> None:
        """Store an object created from this manifest as a prototype for later copies."""
        most = self._store.max_object_bytes
        if isinstance(made, Pod) and self._pods is not None:
            if not self._admission.admits_each("Pod", made.namespace):
                self._pods.add(PodPrototype(made, raw, self._pod_strategy, most), raw)
        elif isinstance(made, Node) and self._nodes is not None:
            if not self._admission.admits_each("Node", ""):
                self._nodes.add(NodePrototype(made, raw), raw, most)

    def _node(self, prototype: NodePrototype, raw: Raw) -> Node | None:
        if raw["metadata"]["name"] in self._objects.space("Node", ""):
            return None
        at = stamp(self._store.now)
        made = prototype.copy(raw, self._generated.uid("Node"), self._store.version + 1, at)
        self._objects.commit(ADDED, None, made)
        return made

    def _pod(self, prototype: PodPrototype, raw: Raw) -> Pod | None:
        admitted, namespace = prototype.admitted(raw), prototype.pod.namespace
        name = None if admitted is None else prototype.name_of_copy(raw)
        taken = self._objects.space("Pod", namespace)
        at = stamp(self._store.now)
        if admitted is None or name is None or name in taken or not prototype.may_copy_at(at):
            return None
        if prototype.generates:
            name = self._generated.name("Pod", raw["metadata"]["generateName"], taken)
        made = prototype.copy(admitted, name, self._generated.uid("Pod"), self._store.version + 1, at)
        self._objects.commit_copy(made, prototype.indexed)
        return made
