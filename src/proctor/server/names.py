"""Which texts may be names: what others see in their lists and terminals shows all that it holds.

Users, teams, environments, hosts and secrets have stricter rules of their own. Knows nothing of what
is named.
"""

from __future__ import annotations

import unicodedata

from proctor.server.problems import InvalidError

LONGEST_NAME = 200
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode's categories of controls, marks of direction and width, and what no font shows."""
LINES = "\n\t"


def check_name(text: str, field: str, *, longest: int = LONGEST_NAME) -> None:
    """Refuse a name that is too long, cannot be seen whole, or looks like another one that is stored."""
    check_text(text, field, longest=longest)
    if not unicodedata.is_normalized("NFC", text):
        raise InvalidError(f"{field} is not in Unicode's composed form (NFC); convert it.", field=field)


def check_text(text: str, field: str, *, longest: int = LONGEST_NAME, allowed: str = "") -> None:
    if len(text) > longest:
        raise InvalidError(f"{field} has at most {longest:,} characters.", field=field)
    for char in text:
        if unicodedata.category(char) in HIDDEN and char not in allowed:
            raise InvalidError(
                f"{field} holds the character U+{ord(char):04X}, which cannot be seen; leave it out.",
                field=field,
            )
