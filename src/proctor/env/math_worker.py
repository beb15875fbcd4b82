"""A process that compares mathematical answers, one JSON line for each request.

    {"read": "1/2", "form": "exact"}                   →  {"ok": true}    whether it can be read
    {"gold": "1/2", "said": "0.5", "form": "exact"}    →  {"ok": true}    whether they are equal

It says {"ok": true} once it is ready, and ends when its standard input is closed. A hostile formula may
keep it busy for ever or take all memory, so it lives apart from everything else, is limited, and may be
killed at any moment. Imports nothing of Proctor: it is started often and alone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import signal
from functools import lru_cache
from typing import Any, TextIO

MEMORY_BYTES = 1 << 30
EXACT = "exact"
"""The answer stands alone, without other words."""
PROSE = "prose"
"""It may be a formula, or words that contain one."""
BOXED = "boxed"
"""It is what a box held, and is read as verifiers reads it: by math-verify, as it is."""
LONGEST_FORMULA = 500
"""Characters; anything longer outside a box is prose."""

FUNCTION = r"(?<![\\A-Za-z])(arc(?:sin|cos|tan)|(?:sin|cos|tan)h?|cot|sec|csc|log|ln|exp|sqrt|pi)(?![A-Za-z])"
SHORT_WORD = r"[Tt]he|[Ff]or|[Aa]ll|[Aa]ny|[Aa]re|[Ii]s|[Ss]o|mod|per"
WORD = rf"(?<![\\A-Za-z])(?:(?=[A-Z]*[a-z])[A-Za-z]{{4,}}|{SHORT_WORD})(?![A-Za-z])"
"""English rather than a product of variables: `abc` may well be one, and `ABCD` names points."""
TEXT_COMMAND = re.compile(r"\\(?:text|textbf|mathrm|mathbf|operatorname|begin|end)\s*\{[^{}]*\}")
INTRODUCTION = re.compile(r"^[A-Za-z' ]*\b(?:is|are|equals)\b:?\s+|^[A-Za-z ]+:\s+")
UNIT = re.compile(rf"(?<=[\w}})\]%])(?:\s+{WORD})+$")
FORMULA = re.compile(r"[\d\\=+*/^<>-]")


def parse_exact(text: str) -> list[Any]:
    """The meaning of a text that is a formula or one word; empty if it is unclear."""
    text = plain_notation(text).rstrip(". ")
    formula = UNIT.sub("", INTRODUCTION.sub("", text))
    if not FORMULA.search(formula):
        formula = text
    elif re.search(WORD, TEXT_COMMAND.sub("", formula)):
        return []  # otherwise every letter of these words would be read as a variable
    # The box makes its content count as one formula, even without dollar signs.
    return parse_formula(rf"\boxed{{{formula}}}")


def parse_answer(text: str) -> list[Any]:
    """The meaning of a text that may be a formula, or prose that contains one."""
    if "\n" in text or len(text) > LONGEST_FORMULA:
        return parse_formula(text)
    return parse_exact(text) or parse_formula(text)


def parse_formula(text: str) -> list[Any]:
    from math_verify import parse

    found: list[Any] = parse(text, fallback_mode="no_fallback", parsing_timeout=None)
    return found


def plain_notation(text: str) -> str:
    """LaTeX for notation from programs and chats that would be misread."""
    text = re.sub(r"^\*\*(.*)\*\*$", r"\1", text.strip(), flags=re.DOTALL)
    text = re.sub(r"\*\*\s*(-?[\w.]+)", r"^{\1}", text).replace("**", "^")
    text = re.sub(r"(?<![\w.\\])(\d+(?:\.\d+)?)[eE]([+-]?\d+)(?![\w.])", r"\1 \\times 10^{\2}", text)
    text = re.sub(r"\s*(?<![A-Za-z])per\s?cent(?![A-Za-z])", r"\\%", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<![\\A-Za-z])sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    return re.sub(FUNCTION, r"\\\1 ", text).replace("∞", r"\infty ")


def parse_boxed(text: str) -> list[Any]:
    from math_verify import parse

    found: list[Any] = parse(rf"\boxed{{{text}}}", parsing_timeout=None)
    return found


READERS = {EXACT: parse_exact, PROSE: parse_answer, BOXED: parse_boxed}


@lru_cache(maxsize=256)
def parse_gold(text: str, form: str) -> list[Any]:
    return parse_boxed(text) if form == BOXED else parse_exact(text)


def compare_answers(request: dict[str, Any]) -> bool:
    from math_verify import verify

    form = request["form"]
    if "read" in request:
        return bool(parse_gold(request["read"], form))
    answer = READERS[form](request["said"])
    return bool(answer) and bool(verify(parse_gold(request["gold"], form), answer, timeout_seconds=None))


def serve(requests: TextIO, replies: TextIO) -> None:
    for line in requests:
        request = json.loads(line)
        end_after(request.get("seconds", 0.0), request.get("patience", 0.0))
        try:
            ok = compare_answers(request)
        except Exception:  # what exhausts memory or the stack was not meant as a formula
            ok = False
        end_after(0.0, 0.0)
        send_reply(replies, {"ok": ok})


def send_reply(replies: TextIO, reply: dict[str, Any]) -> None:
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


def end_after(seconds: float, patience: float) -> None:
    """Have the system end this process after so much CPU time, or so much real time; 0 sets no limit. Without
    this, a worker whose parent died would run forever."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, patience)


def limit_memory() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):  # not supported everywhere
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def claim_standard_streams() -> tuple[TextIO, TextIO]:
    """Keep standard input and output for ourselves; what a library prints or reads goes nowhere."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return requests, replies


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for our parent
    requests, replies = claim_standard_streams()
    limit_memory()
    logging.disable()
    with contextlib.suppress(BrokenPipeError):
        trouble = warm_up()
        send_reply(replies, {"ok": not trouble, "error": trouble})
        serve(requests, replies)


def warm_up() -> str:
    """Make the first, slow comparison; returns what is wrong with this installation, if anything."""
    try:
        same = compare_answers({"gold": r"\frac{1}{2}", "said": "0.5", "form": EXACT})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "" if same else "math-verify does not see that 1/2 is 0.5"


if __name__ == "__main__":
    main()
