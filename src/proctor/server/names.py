"""Which texts may be names: what appears in others' lists and terminals must be fully visible.

Users, teams, environments, hosts and secrets have stricter rules of their own. Knows nothing of what is
named.
"""

from __future__ import annotations

import unicodedata

from proctor.server.problems import InvalidError

LONGEST_NAME = 200
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode's categories of control characters, direction and width marks, and characters without a glyph."""
LINES = "\n\t"


def check_name(text: str, field: str, *, longest: int = LONGEST_NAME) -> None:
    """Reject a name that is too long, is not fully visible, or could be confused with a stored one."""
    check_text(text, field, longest=longest)
    if not unicodedata.is_normalized("NFC", text):
        raise InvalidError(f"{field} is not in Unicode's composed form (NFC); convert it.", field=field)


def check_text(text: str, field: str, *, longest: int = LONGEST_NAME, allowed: str = "") -> None:
    if len(text) > longest:
        raise InvalidError(f"{field} may have at most {longest:,} characters.", field=field)
    for char in text:
        if unicodedata.category(char) in HIDDEN and char not in allowed:
            raise InvalidError(
                f"{field} holds the character U+{ord(char):04X}, which is invisible; remove it.",
                field=field,
            )
