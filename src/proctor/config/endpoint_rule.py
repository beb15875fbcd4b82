"""The rule by which a model becomes an endpoint, as people read it: in docs/models.md and in
`proctor models list`. The code is choose_endpoint in endpoint_choice.py.
"""

from __future__ import annotations

RULE = (
    ("-m ALIAS", "its row in the endpoint registry"),
    ("-m local, -m scripted", "the embedded model, or replies from a file, in this process"),
    ("--provider, -b or -k", "that provider, that address, or the provider whose key that is"),
    ("-m claude-NAME, -m gemini-NAME", "its maker, if the maker's key is set"),
    ("agent claude, openai or gemini", "its provider, if that key is set"),
    ("-m NAME, or an agent's model", "the server you are logged in to, if it offers the model"),
    ("-m NAME, or an agent's model", "the first of PRIME_, OPENAI_ and OPENROUTER_API_KEY that is set"),
    ("no model", "openai/gpt-4.1-mini, if the endpoint registry has it"),
    ("no model", "the default model of the server you are logged in to, if it has models"),
    ("no model", "openai/gpt-4.1-mini, with the first of those keys that is set"),
    ("no model", "the embedded model"),
)
"""What you pass → what is used; the first row that applies."""


def rule_table() -> str:
    rows = [f"| {given} | {used} |" for given, used in RULE]
    return "\n".join(["| you pass | Proctor uses |", "|---|---|", *rows]) + "\n"
