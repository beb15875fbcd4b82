"""Where verifiers has StatefulToolEnv."""

from proctor.env.tool_env import StatefulToolEnv as StatefulToolEnv
