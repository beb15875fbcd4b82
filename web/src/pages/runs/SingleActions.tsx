/** Of one selected run, everything that its page offers. */
import { useState } from "react";
import { RenameForm } from "#/actions/RenameForm";
import { RenameButton, RunActions } from "#/actions/RunActions";
import { TagDialog, TagsButton } from "#/actions/Tags";
import { actionWords } from "#/actions/words";
import type { RunInfo } from "#/api/types";
import { Dialog } from "#/design/Dialog";

export function SingleActions({ run }: { run: RunInfo }) {
  const [open, setOpen] = useState<"rename" | "tags" | null>(null);
  const close = () => setOpen(null);
  return (
    <>
      <RunActions run={run} onDeleted={() => {}} />
      <RenameButton run={run} onClick={() => setOpen("rename")} />
      <TagsButton run={run} onClick={() => setOpen("tags")} />
      {open === "rename" && (
        <Dialog open onClose={close} title={actionWords.rename.title}>
          <RenameForm run={run} onClose={close} />
        </Dialog>
      )}
      {open === "tags" && <TagDialog run={run} onClose={close} />}
    </>
  );
}
