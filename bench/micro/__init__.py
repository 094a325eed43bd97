"""What single steps cost: timed in this process, told as nanoseconds and as ratios."""
