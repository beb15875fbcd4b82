"""A price list behind a tool: a v1 taskset whose tool server is a process of its own."""

import verifiers.v1 as vf

PRICES = {"tea": 3, "cake": 5}


class PriceTools(vf.Toolset[vf.ToolsetConfig]):
    TOOL_PREFIX = "shop"

    @vf.tool
    def price(self, item: str) -> str:
        """The price of an item."""
        return str(PRICES.get(item, "unknown"))


class PriceTaskConfig(vf.TaskConfig):
    tools: vf.ToolsetConfig = vf.ToolsetConfig()


class PriceData(vf.TaskData):
    item: str


class PriceTask(vf.Task[PriceData, vf.State, PriceTaskConfig]):
    @classmethod
    def toolsets(cls, config: PriceTaskConfig) -> list[vf.Toolset]:
        return [PriceTools(config.tools)]

    @vf.reward
    async def right(self, trace: vf.Trace) -> float:
        return float(str(PRICES[self.data.item]) in trace.last_reply)

    @vf.metric
    async def tool_calls(self, trace: vf.Trace) -> float:
        return float(len(trace.tool_messages))


class PriceConfig(vf.TasksetConfig):
    task: PriceTaskConfig = PriceTaskConfig()


class PriceTaskset(vf.Taskset[PriceTask, PriceConfig]):
    def load(self):
        return [
            PriceTask(PriceData(prompt=f"Price of {item}?", item=item), self.config.task) for item in PRICES
        ]


__all__ = ["PriceTaskset"]

if __name__ == "__main__":
    PriceTools.run()
