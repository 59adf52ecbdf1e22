"""Tests of the collector: PYTHONPATH=.. python -m unittest discover -s collect -t . in python/tests/."""
