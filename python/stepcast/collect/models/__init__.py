"""Models whose training steps are measured, with random weights: library classes where installed, else our own."""
