"""The log of a cluster: attempts, moves in the queue, bindings and preemptions, in one list of limited length.

    scheduling driver, queue ─▶ Log ─▶ Events, `decisions`, `queue pod`, `explain` of the past, reports, status

The daemon, each fork, each virtual cluster and each replay have their own log. An entry deleted from the log is no
longer available for any use.
"""
