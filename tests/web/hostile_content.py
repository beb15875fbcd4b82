"""Texts that have broken other viewers, or would run in a careless one. Each must be shown as text."""

from __future__ import annotations

import json

MARK = "hostile-ran"
"""Becomes the page's title, or a property of its window, should any of them ever run."""
DEEP = 10_000
LONG_LINE = 10_000_000

HOSTILE_TEXTS: dict[str, str] = {
    "script": f"<script>window['{MARK}'] = 1</script>",
    "image handler": f"<img src=x onerror=\"window['{MARK}'] = 1\">",
    "svg": f"<svg onload=\"window['{MARK}'] = 1\"><script>window['{MARK}'] = 1</script></svg>",
    "iframe": f"<iframe srcdoc=\"<script>parent['{MARK}'] = 1</script>\"></iframe>",
    "style": "<style>* { display: none }</style>",
    "base": '<base href="https://evil.example/">',
    "closing tags": "</textarea></script></style></pre></code>--><b>bold?</b>",
    "javascript link": f"[click](javascript:window['{MARK}']=1) <a href=\"javascript:alert(1)\">and me</a>",
    "data link": f"[a page](data:text/html,<script>window['{MARK}']=1</script>)",
    "foreign image": "![pixel](https://evil.example/pixel.png?who=you)",
    "foreign markdown": "[ref]: https://evil.example 'x'\n\n![logo][ref] <link href=//evil.example>",
    "ansi": "\x1b[31mred\x1b[0m \x1b[2J\x1b[H\x1b[?1049h \x1b]0;a title\x07 after",
    "osc 8": "\x1b]8;;javascript:alert(1)\x1b\\a link\x1b]8;;\x1b\\ after",
    "right to left": "a file called \u202egnp.exe\u202c and \u2066isolated\u2069",
    "zero width": "ad\u200bmin \u200d\ufeff visible",
    "combining": "Z" + "\u0351\u036b\u0343\u036a\u0302" * 200,
    "nul": "before\x00after",
    "control": "".join(map(chr, range(1, 32))) + "\x7f\x85\u2028\u2029",
    "dollars": "It costs $5.00, and $6 tomorrow; $x$ is not a formula, \\(x^2\\) is one.",
    "latex": "\\[ \\href{javascript:alert(1)}{x} \\def\\x{\\x\\x}\\x \\]",
    "template": "{{constructor.constructor('return 1')()}} ${7*7} <%= 7*7 %>",
    "prototype": '{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}',
    "deep json": "[" * DEEP + "]" * DEEP,
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \U0001f1e9\U0001f1ea",
    "slash": "a/b?c=d#e&f=%2e%2e/..;/'\"`<>",
    "empty": "",
}

LONE_SURROGATE_LINE = json.dumps({"role": "assistant", "content": "half: \ud83d"})
"""As JSON that a file may contain; no text in a database can."""


def long_line() -> str:
    return "x" * LONG_LINE
