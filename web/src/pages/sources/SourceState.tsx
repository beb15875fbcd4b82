/** Where a source or one of its syncs stands, as a shape and a word. */
import type { SourceInfo, SourceSync } from "#/api/sources";
import { Mark, type Tone } from "#/design/Badge";
import type { IconName } from "#/design/Icon";
import { text } from "./words";

type Status = SourceSync["status"];

const LOOKS: Record<Status, { tone: Tone; icon: IconName }> = {
  running: { tone: "accent", icon: "play" },
  succeeded: { tone: "good", icon: "checkCircle" },
  failed: { tone: "bad", icon: "xCircle" },
  interrupted: { tone: "warn", icon: "alert" },
};

export const SyncState = ({ status }: { status: Status }) => (
  <Mark {...LOOKS[status]} pulse={status === "running"}>
    {text.state[status]}
  </Mark>
);

export function SourceState({ source }: { source: SourceInfo }) {
  if (source.syncing_since != null) return <SyncState status="running" />;
  if (source.problem) return <SyncState status="failed" />;
  if (source.commit_sha) return <SyncState status="succeeded" />;
  return (
    <Mark tone="neutral" icon="minus">
      {text.state.never}
    </Mark>
  );
}
