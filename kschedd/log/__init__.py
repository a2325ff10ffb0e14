"""The log of a cluster: attempts, moves in the queue, bindings and preemptions, in one list of limited length.

    scheduling driver, queue ─▶ Log ─▶ Events, `decisions`, `queue pod`, `explain` of the past, reports, status

The daemon, each fork, each virtual cluster and each replay have a log of their own. After an entry is deleted from the
log, nothing else can use it.
"""
