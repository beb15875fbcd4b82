"""Where verifiers has ToolEnv."""

from proctor.env.tool_env import ToolEnv as ToolEnv
