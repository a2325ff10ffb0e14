"""Recordings: what went into the scheduling machines of one run, in one file, so that the run can be replayed.

    daemon ─▶ DriverNotes, QueueNotes, PluginNotes ─▶ RunRecorder ─▶ file ─▶ kschedd.simulation.replay

What decides are two pure machines, the scheduling driver and the scheduling queue: the same calls in the same order
give the same decisions. So a recording is the log of these calls, with the values that came from outside: events of the
store, times, answers of out-of-tree plugins and extenders, outcomes of writes, changes of the configuration. Whatever
the calls follow from (which pods a call of the queue hands out, which operations the driver wants) is not in it. Who
calls, and how calls are batched over channels, makes no difference.
"""
