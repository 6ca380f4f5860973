"""CUDA and Triton code, and batched variants of operations. Only `evengraph.ops` imports it.

Triton ships with torch's CUDA builds; modules that need it are imported only where it is installed.
"""
