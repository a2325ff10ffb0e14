"""Telemetry: traces of attempts and the metrics, pushed to a collector of OpenTelemetry (the extra `otel`)."""
