"""Tests of the collector: python -m unittest discover -s tests -t . in collect/."""
