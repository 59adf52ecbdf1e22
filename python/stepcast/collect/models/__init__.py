"""Models for measured training steps, with random weights: library classes if installed, else our own."""
