"""The benchmark workloads and their runner (kschedd bench)."""
