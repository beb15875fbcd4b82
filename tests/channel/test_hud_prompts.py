"""What `hud` serves as a prompt is read as hud's own agents see it."""

from __future__ import annotations

import pytest

from proctor.channel.grades import read_hud_prompt
from proctor.errors import EnvError


def user(*texts: str) -> list[dict[str, object]]:
    return [{"role": "user", "content": text} for text in texts]


@pytest.mark.parametrize(
    ("prompt", "messages"),
    [
        ("Hi.", user("Hi.")),
        (None, user("")),
        ("", user("")),
        (["One.", "Two."], user("One.", "Two.")),
        ([{"role": "system", "content": "Be brief."}, {"content": "Hi."}], user("Be brief.", "Hi.")),
        ([{"role": "assistant", "content": "Yes?"}], [{"role": "assistant", "content": "Yes?"}]),
        ([{"role": "user", "content": {"type": "text", "text": "Hi."}}], user("Hi.")),
        (
            [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
            user("a", "b"),
        ),
        (
            [{"role": "user", "content": {"type": "image", "data": "QQ==", "mimeType": "image/png"}}],
            [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}],
                }
            ],
        ),
    ],
)
def test_a_prompt_becomes_the_turns_that_hud_shows(prompt: object, messages: list[object]) -> None:
    assert read_hud_prompt(prompt, "task") == messages


@pytest.mark.parametrize("prompt", [7, [], [{"role": "user"}], [7]])
def test_what_hud_cannot_show_is_the_environments_error(prompt: object) -> None:
    with pytest.raises(EnvError):
        read_hud_prompt(prompt, "task")
