/** Asks before a run is stopped. The run is `stopping` until the server says that it has stopped. */
import { useQueryClient } from "@tanstack/react-query";
import { useChange } from "#/api/change";
import { stopRun } from "#/api/runActions";
import { isActive } from "#/api/runs";
import type { RunInfo } from "#/api/types";
import { announce } from "#/app/announcer";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { words as common } from "#/words";
import { actionWords } from "./words";

const words = actionWords.stop;

export function StopDialog({ run, onClose }: { run: RunInfo; onClose: () => void }) {
  const client = useQueryClient();
  const stop = useChange<void, RunInfo>({
    send: () => stopRun(client, run.id),
    onDone: (answer) => {
      const isTooLate = !isActive(answer.status) && answer.status !== "stopped";
      announce(isTooLate ? words.tooLate(common.status[answer.status]) : words.sent);
      onClose();
    },
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={words.title}
      action={words.button}
      onConfirm={() => stop.submit()}
      isBusy={stop.isBusy}
      error={stop.error}
    >
      <p>{words.text(run.progress.settled)}</p>
      {!isActive(run.status) && <p role="alert">{words.tooLate(common.status[run.status])}</p>}
    </ConfirmDialog>
  );
}
