"""Reasons why Cluster Autoscaler keeps a node, with upstream's names."""

from enum import Enum


class KeptReason(Enum):
    DISABLED = "ScaleDownDisabledAnnotation"
    UNREADY_DISABLED = "ScaleDownUnreadyDisabled"
    NOT_AUTOSCALED = "NotAutoscaled"
    NOT_UNNEEDED_LONG_ENOUGH = "NotUnneededLongEnough"
    NOT_UNREADY_LONG_ENOUGH = "NotUnreadyLongEnough"
    MIN_SIZE_REACHED = "NodeGroupMinSizeReached"
    RESOURCE_MINIMUM_EXCEEDED = "MinimalResourceLimitExceeded"
    BEING_DELETED = "CurrentlyBeingDeleted"
    NOT_UNDERUTILIZED = "NotUnderutilized"
    RECENTLY_UNREMOVABLE = "RecentlyUnremovable"
    NO_PLACE_TO_MOVE_PODS = "NoPlaceToMovePods"
    BLOCKED_BY_POD = "BlockedByPod"
    BLOCKED_BY_ON_COMPLETION_POD = "BlockedByOnCompletionPod"
    UNEXPECTED_ERROR = "UnexpectedError"
