"""Tests that an executor collects the audit annotations of accepted and rejected requests."""

from typing import Any

import pytest
import trio

from kschedd.access.users import User
from kschedd.service.execution import Executor
from kschedd.service.request import Request
from kschedd.store.errors import ApiError
from tests.apiserver.asking import asking
from tests.store.policies.made import BAD, binding, config_map, policy


async def test_annotations_of_all_requests_are_collected() -> None:
    seen = {"key": "seen", "valueExpression": "string(object.metadata.name)"}
    with trio.fail_after(90):
        async with asking() as api:
            await api.cluster.store.create(policy(auditAnnotations=[seen]))
            await api.cluster.store.create(binding(validationActions=["Deny", "Audit"]))
            executor = Executor(api.cluster, api.face.services.shares.workers, "1", "objects.create", User("ann"))

            async def create(name: str, **rest: Any) -> None:
                await executor.serve(Request("create", "ConfigMap", "default", body=config_map(name, **rest)))

            await create("good", data={"a": "1"})
            assert executor.annotations == {"p/seen": "good"}
            with pytest.raises(ApiError):
                await create("bad", **BAD)
    assert sorted(executor.annotations) == ["p/seen", "validation.policy.admission.k8s.io/validation_failure"]
    assert executor.annotations["p/seen"] == "good", "the first value stays"
