"""Kills at random moments, full disks, and readers beside writers."""
