"""What runs the embedded cluster beside the scheduler: pure rules that read objects and answer with writes."""
