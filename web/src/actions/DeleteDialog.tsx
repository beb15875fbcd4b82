/** Asks before a run is deleted for good. */
import { useQueryClient } from "@tanstack/react-query";
import { useChange } from "#/api/change";
import { deleteRun } from "#/api/runActions";
import type { RunInfo } from "#/api/types";
import { announce } from "#/app/announcer";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { actionWords } from "./words";

const words = actionWords.remove;

type Props = { run: RunInfo; onClose: () => void; onDone: () => void };

export function DeleteDialog({ run, onClose, onDone }: Props) {
  const client = useQueryClient();
  const remove = useChange({
    send: () => deleteRun(client, run.id),
    onDone: () => {
      announce(words.done);
      onDone();
    },
  });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={words.title}
      action={words.button}
      onConfirm={() => remove.submit()}
      isBusy={remove.isBusy}
      error={remove.error}
    >
      <p>
        <strong>{run.name || run.id}</strong>
      </p>
      <p>{words.text}</p>
    </ConfirmDialog>
  );
}
