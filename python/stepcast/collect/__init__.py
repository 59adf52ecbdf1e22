"""Measures a GPU for stepcast: kernel times, training steps, traces. Needs only PyTorch.

    python -m stepcast.collect all --out DIR

docs/collector.md explains the measurements and the files.
"""

__version__ = "1"
