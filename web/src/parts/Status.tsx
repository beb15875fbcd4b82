/** The state of a run, as a badge or, in tables, as a mark. */
import type { RunStatus } from "#/api/types";
import { Badge, Mark, type Tone } from "#/design/Badge";
import type { IconName } from "#/design/Icon";
import { words } from "#/words";

const LOOKS: Record<RunStatus, { tone: Tone; icon: IconName; pulse?: boolean }> = {
  pending: { tone: "neutral", icon: "circle" },
  running: { tone: "accent", icon: "play", pulse: true },
  stopping: { tone: "warn", icon: "half", pulse: true },
  finished: { tone: "good", icon: "checkCircle" },
  failed: { tone: "bad", icon: "xCircle" },
  stopped: { tone: "warn", icon: "square" },
  timed_out: { tone: "warn", icon: "clock" },
};

export const StatusBadge = ({ status }: { status: RunStatus }) => (
  <Badge {...LOOKS[status]}>{words.status[status]}</Badge>
);

export const StatusMark = ({ status }: { status: RunStatus }) => (
  <Mark {...LOOKS[status]}>{words.status[status]}</Mark>
);
