"""``python -m irlang`` is the command ``irlang``."""

from irlang.cli import main

if __name__ == "__main__":
    main()
