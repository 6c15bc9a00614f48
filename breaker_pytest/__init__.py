"""The pytest plugin: `pytest --breaker`, and the fixture `breaker_replay`. Importing it loads nothing else."""
