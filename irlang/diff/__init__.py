"""Targets against the oracle: running, judging, localising, storing and reporting."""
