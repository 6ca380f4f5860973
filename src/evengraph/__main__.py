"""`python -m evengraph` is the command `evengraph`."""

from evengraph.cli import main

if __name__ == "__main__":
    main()
