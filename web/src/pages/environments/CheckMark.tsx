/** The state of a version's check: a word, a shape and a colour. */
import type { Version } from "#/api/types";
import { Badge, Mark, type Tone } from "#/design/Badge";
import type { IconName } from "#/design/Icon";
import { text } from "./words";

type CheckStatus = Version["check"]["status"];

const LOOKS: Record<CheckStatus, { tone: Tone; icon: IconName }> = {
  pending: { tone: "neutral", icon: "clock" },
  running: { tone: "accent", icon: "play" },
  passed: { tone: "good", icon: "checkCircle" },
  failed: { tone: "bad", icon: "xCircle" },
  inconclusive: { tone: "warn", icon: "help" },
};

export const CheckMark = ({ status }: { status: CheckStatus }) => (
  <Mark {...LOOKS[status]} pulse={status === "running"}>
    {text.checks[status]}
  </Mark>
);

export const CheckBadge = ({ status }: { status: CheckStatus }) => (
  <Badge {...LOOKS[status]} pulse={status === "running"}>
    {text.checks[status]}
  </Badge>
);
