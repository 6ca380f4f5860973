"""Many runs trained as one batched model."""
