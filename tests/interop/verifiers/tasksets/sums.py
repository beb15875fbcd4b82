"""Sums, as a v1 taskset: weighted rewards, a metric, a system prompt and settings."""

import verifiers.v1 as vf


class SumData(vf.TaskData):
    answer: int


class SumTask(vf.Task[SumData]):
    @vf.reward(weight=1.0)
    async def correct(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == str(self.data.answer))

    @vf.reward(weight=0.25)
    async def short(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply) < 5)

    @vf.metric
    async def letters(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply))


class SumsConfig(vf.TasksetConfig):
    count: int = 2


class SumsTaskset(vf.Taskset[SumTask, SumsConfig]):
    def load(self):
        for number in range(self.config.count):
            data = SumData(
                prompt=f"What is {number} + {number}?",
                system_prompt="Answer with the number only.",
                answer=2 * number,
            )
            yield SumTask(data, self.config.task)


__all__ = ["SumsTaskset"]
