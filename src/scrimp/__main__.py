"""`python -m scrimp` is the same as `scrimp`."""

from scrimp.cli.main import main

if __name__ == "__main__":
    main()
