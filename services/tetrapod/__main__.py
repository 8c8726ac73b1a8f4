"""`python -m tetrapod`: the command `tetrapod`."""

from tetrapod.cli.main import main

if __name__ == "__main__":
    main()
