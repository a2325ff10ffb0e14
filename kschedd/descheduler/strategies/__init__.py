"""The strategies of the descheduler; each decides which pods to evict."""
