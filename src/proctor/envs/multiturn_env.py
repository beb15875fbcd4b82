"""Where verifiers has MultiTurnEnv."""

from proctor.env.multi_turn import MultiTurnEnv as MultiTurnEnv
