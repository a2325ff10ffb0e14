"""The strategies of the descheduler, which decide which pods are evicted."""
