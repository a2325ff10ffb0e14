"""The log of a cluster: attempts, moves in the queue, bindings and preemptions, in one list of limited length.

    scheduling driver, queue ─▶ Log ─▶ Events, `decisions`, `queue pod`, `explain` of the past, reports, status

The daemon, forks, virtual clusters and replays each have one. Entries deleted from the log are gone from all of its
uses.
"""
