/** How one rollout ended: a word, a shape and a colour, and for scored ones whether it passed. */
import type { Outcome } from "#/api/types";
import { Badge, Mark, type Tone } from "#/design/Badge";
import type { IconName } from "#/design/Icon";
import { words } from "#/words";

const LOOKS: Record<string, { tone: Tone; icon: IconName }> = {
  scored: { tone: "good", icon: "check" },
  truncated: { tone: "warn", icon: "minus" },
  excluded: { tone: "neutral", icon: "ban" },
  model_error: { tone: "bad", icon: "xCircle" },
  environment_error: { tone: "bad", icon: "xCircle" },
  grader_error: { tone: "bad", icon: "xCircle" },
  agent_error: { tone: "bad", icon: "xCircle" },
  timeout: { tone: "warn", icon: "clock" },
  cancelled: { tone: "neutral", icon: "square" },
};
const UNKNOWN = { tone: "neutral", icon: "help" } as const;

/** A run may come from elsewhere, with outcomes that we have no word for: then theirs is shown. */
export const nameOutcome = (outcome: string): string =>
  words.outcome[outcome] ?? outcome.replaceAll("_", " ");
export const toneOfOutcome = (outcome: string): Tone => (LOOKS[outcome] ?? UNKNOWN).tone;

export const OutcomeBadge = ({ outcome }: { outcome: Outcome | string }) => (
  <Badge {...(LOOKS[outcome] ?? UNKNOWN)}>{nameOutcome(outcome)}</Badge>
);

export const OutcomeMark = ({ outcome }: { outcome: Outcome | string }) => (
  <Mark {...(LOOKS[outcome] ?? UNKNOWN)}>{nameOutcome(outcome)}</Mark>
);
