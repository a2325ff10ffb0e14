"""The controllers of Services: Endpoints and EndpointSlices."""
