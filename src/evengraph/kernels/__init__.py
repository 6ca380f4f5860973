"""CUDA and Triton code, and batched variants of operations."""
