"""Recordings: all inputs of the scheduling machines of one run, in one file, from which the run can be replayed.

    daemon ─▶ DriverNotes, QueueNotes, PluginNotes ─▶ RunRecorder ─▶ file ─▶ kschedd.simulation.replay

All decisions are made by two pure machines, the scheduling driver and the scheduling queue: the same calls in the same
order give the same decisions. A recording is therefore the log of these calls, with all values from outside: events of
the store, times, results of out-of-tree plugins and extenders, results of writes, and configuration changes. Values
that follow from the calls (the pods that a call of the queue returns, the operations that the driver requests) are not
recorded. The result is the same whichever actor makes a call, and however calls are batched over channels.
"""
