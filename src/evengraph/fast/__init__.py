"""What makes the same mathematics quick: kernels, fused forms, batches of runs."""
