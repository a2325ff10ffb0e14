"""Telemetry: traces of attempts and metrics, sent to an OpenTelemetry collector (the extra `otel`)."""
