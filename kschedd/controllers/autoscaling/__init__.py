"""The controller of HorizontalPodAutoscalers."""
