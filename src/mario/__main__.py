"""`python -m mario`: the command line where the `mario` script is not on the path."""

from mario.cli import main

if __name__ == "__main__":
    main()
