"""``python -m fairshield`` is the command ``fairshield``."""

from __future__ import annotations

from fairshield.cli import main

if __name__ == "__main__":
    main()
