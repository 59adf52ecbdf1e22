"""Measures a GPU for stepcast: kernel times, training steps, traces. Needs PyTorch and nothing else.

    python -m stepcast.collect all --out DIR

docs/collector.md says what is measured and what the files hold.
"""

__version__ = "1"
