"""Scripts for the supply chain: lock, licences, the lowest versions."""
