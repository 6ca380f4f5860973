"""The desk: local pages to label nodes at, and the file that holds the labels."""
