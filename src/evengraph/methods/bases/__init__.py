"""What several methods share: the contract, networks, and parts of training."""
