"""Recordings: all inputs of the scheduling state machines in one run, in one file with which the run can be replayed.

    daemon ─▶ DriverNotes, QueueNotes, PluginNotes ─▶ RunRecorder ─▶ file ─▶ kschedd.simulation.replay

Two pure state machines make all decisions, the scheduling driver and the scheduling queue: the same calls in the same
order result in the same decisions. A recording is therefore the log of these calls, with all values from outside:
events of the store, times, results of out-of-tree plugins and extenders, results of writes, and changes of the
configuration. Values that follow from the calls (such as the pods that a call of the queue returns, or the operations
that the driver requests) are not recorded. The result does not depend on which actor makes a call, and on how calls are
batched over channels.
"""
