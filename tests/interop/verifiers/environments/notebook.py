"""Tools with state: an argument that the model never sees, and notes that the rubric reads."""

import verifiers as vf
from datasets import Dataset


class NotebookEnv(vf.StatefulToolEnv):
    def __init__(self, **kwargs):
        super().__init__(tools=[], **kwargs)
        self.add_tool(self.write_note, args_to_skip=["notes"])

    async def setup_state(self, state: vf.State, **kwargs) -> vf.State:
        state["notes"] = []
        return await super().setup_state(state, **kwargs)

    def update_tool_args(self, tool_name, tool_args, messages, state, **kwargs) -> dict:
        return {**tool_args, "notes": state["notes"]}

    async def write_note(self, text: str, notes: list) -> str:
        """Write a note.

        Args:
            text: What to write down.
        """
        notes.append(text)
        return f"{len(notes)} notes"


def noted(state, answer) -> float:
    return float(answer in state["notes"])


def load_environment(max_turns: int = 4) -> vf.Environment:
    rows = [{"question": f"Note the word {word}.", "answer": word} for word in ("pear", "plum")]
    return NotebookEnv(dataset=Dataset.from_list(rows), rubric=vf.Rubric(funcs=[noted]), max_turns=max_turns)
