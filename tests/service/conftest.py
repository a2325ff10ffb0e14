"""A store with a node, a pod and a Deployment."""

import pytest

from kschedd.store.store import Store
from tests.actors.clusters import deployment, node, pod


@pytest.fixture
def store() -> Store:
    made = Store(now=lambda: 0.0)
    for raw in (node(), pod(), deployment()):
        made.create(raw)
    return made
