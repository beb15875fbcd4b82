"""The tool loop under well-known names, each with a default model.

A preset decides the model and where it is called, nothing else: the loop is the same for all.
"""

from __future__ import annotations

from functools import partial

from proctor.agents.tool_loop import ToolLoop

claude = partial(ToolLoop, name="claude", model="claude-sonnet-4-5", provider="anthropic")

# By the Responses API: only there do a model's thoughts survive from one tool call to the next.
openai = partial(ToolLoop, name="openai", model="gpt-5", provider="openai", client_type="openai_responses")

gemini = partial(ToolLoop, name="gemini", model="gemini-2.5-flash", provider="gemini")

openai_compatible = partial(ToolLoop, name="openai_compatible")
"""Any server that speaks OpenAI's chat completions; choose it with -m and -b."""
