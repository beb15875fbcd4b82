"""Where verifiers has SingleTurnEnv."""

from proctor.env.multi_turn import SingleTurnEnv as SingleTurnEnv
