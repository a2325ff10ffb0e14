"""The log of what happened: attempts, moves in the queue, bindings and preemptions, in one bounded list.

    scheduling driver, queue ─▶ Log ─▶ Events, `decisions`, `queue pod`, `explain` of the past, reports, status

Daemon, forks, virtual clusters and replays each have one. What it forgets is forgotten everywhere.
"""
