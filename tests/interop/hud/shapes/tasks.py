"""Its tasks: each shape once."""

from env import blocks, dialogue, framed, number, odd, parts, point, silent, spaces, sum_of, text, type_of

GRADES = "int float bool more less dict result unfinished failed text nothing nan"
PROMPTS = "empty nothing number texts anonymous developer speechless object"
tasks = [
    *(number(kind=kind) for kind in [*GRADES.split(), "dict bool"]),
    *(odd(kind=kind) for kind in PROMPTS.split()),
    *(silent(), parts(), text(question="Who?", expected="The Quick fox."), sum_of(a=3), point(), dialogue()),
    *(blocks(), framed(), type_of(), spaces()),
]
