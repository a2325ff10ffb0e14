"""Reading of the settings that kube-scheduler has in common with other components: leader election and the connection.

Source: Kubernetes v1.34, component-base/config/v1alpha1, component-base/config/validation.
"""

from __future__ import annotations

from typing import Final

import attrs

from kschedd.config.loading.releases import ConfigRelease
from kschedd.config.model import ClientConnection, LeaderElection
from kschedd.config.parsing.reading import INT32, ConfigValue

_OLD_LOCKS: Final = ("endpoints", "configmaps", "endpointsleases", "configmapsleases")


def read_leader_election(place: ConfigValue | None, release: ConfigRelease) -> LeaderElection:
    fields = place and place.fields(
        "leaderElect",
        "leaseDuration",
        "renewDeadline",
        "retryPeriod",
        "resourceLock",
        "resourceName",
        "resourceNamespace",
        *(("lockObjectName", "lockObjectNamespace") if release.version == "v1alpha1" else ()),
    )
    if not fields:
        return LeaderElection()
    # Upstream replaces each of these values by its default if the value is empty or zero.
    election = LeaderElection(
        leader_elect=fields.boolean("leaderElect", True),
        lease_duration_s=fields.duration_s("leaseDuration", 15.0) or 15.0,
        renew_deadline_s=fields.duration_s("renewDeadline", 10.0) or 10.0,
        retry_period_s=fields.duration_s("retryPeriod", 2.0) or 2.0,
        resource_lock=fields.text("resourceLock", "leases") or "leases",
        resource_namespace=fields.text("resourceNamespace") or fields.text("lockObjectNamespace") or "kube-system",
        resource_name=fields.text("resourceName") or fields.text("lockObjectName") or "kube-scheduler",
    )
    if not election.leader_elect:
        return election
    report = fields.place.reading.report
    if election.resource_lock in _OLD_LOCKS and release.version in ("v1alpha1", "v1alpha2", "v1beta1"):
        why = "kube-scheduler locks with leases only, since v1.24"
        fields.place.reading.warn(fields.path("resourceLock"), election.resource_lock, why, "leases")
        return attrs.evolve(election, resource_lock="leases")
    if election.resource_lock != "leases":
        report(fields.path("resourceLock"), election.resource_lock, "not supported", "leases")
    for field, seconds in (
        ("leaseDuration", election.lease_duration_s),
        ("renewDeadline", election.renew_deadline_s),
        ("retryPeriod", election.retry_period_s),
    ):
        if seconds < 0:
            report(fields.path(field), seconds, "must not be negative")
    if election.lease_duration_s <= election.renew_deadline_s:
        report(fields.path("leaseDuration"), None, "must be longer than renewDeadline")
    if election.renew_deadline_s <= election.retry_period_s:
        report(fields.path("renewDeadline"), None, "must be longer than retryPeriod")
    return election


def read_client_connection(place: ConfigValue | None) -> ClientConnection:
    fields = place and place.fields("kubeconfig", "acceptContentTypes", "contentType", "qps", "burst")
    if not fields:
        return ClientConnection()
    default = ClientConnection()
    return ClientConnection(
        kubeconfig=fields.text("kubeconfig"),
        accept_content_types=fields.text("acceptContentTypes"),
        content_type=fields.text("contentType") or default.content_type,
        qps=fields.number("qps", 0.0) or None,
        burst=fields.integer("burst", 0, (0, INT32[1])) or None,
    )
