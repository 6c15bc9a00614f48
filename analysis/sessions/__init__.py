"""Recorded sessions: find the logs, decode their bytes, read their rows, and tell what happened as facts."""
