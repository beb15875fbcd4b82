/** What can be done to the selected runs at once: stop, tag, delete. Each run is asked for by itself. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useChange } from "#/api/change";
import { deleteRun, editRun, stopRun } from "#/api/runActions";
import type { RunInfo } from "#/api/types";
import { announce } from "#/app/announcer";
import { Button } from "#/design/Button";
import { Dialog } from "#/design/Dialog";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import styles from "./actions.module.css";
import { refuseAll, refuseChange, refuseDelete, refuseStop, useSession } from "./rights";
import { TagField } from "./Tags";
import { actionWords } from "./words";

const words = actionWords.bulk;
const MOST_AT_ONCE = 200;

type Deed = "stop" | "remove" | "tag";
type Act = (client: QueryClient, id: string) => Promise<unknown>;
export type BulkResult = { done: string[]; refused: { name: string; message: string }[] };

const DEEDS = [
  { deed: "stop", icon: "square", label: actionWords.stop.button, refuse: refuseStop },
  { deed: "tag", icon: "plus", label: words.tagButton, refuse: refuseChange },
  { deed: "remove", icon: "close", label: actionWords.remove.button, refuse: refuseDelete },
] as const;

export function BulkActions({ runs }: { runs: readonly RunInfo[] }) {
  const session = useSession();
  const [open, setOpen] = useState<{ deed: Deed; runs: readonly RunInfo[]; others: number } | null>(null);
  if (!session?.has_logins) return null;
  return (
    <>
      {DEEDS.map(({ deed, icon, label, refuse }) => {
        const able = runs.filter((run) => refuse(session, run) === null);
        const reason = refuseAll(session) ?? (able.length === 0 ? words.none[deed] : null);
        const tooMany = able.length > MOST_AT_ONCE ? words.tooMany(MOST_AT_ONCE) : null;
        return (
          <RefusableButton
            key={deed}
            small
            icon={icon}
            reason={reason ?? tooMany}
            onClick={() => setOpen({ deed, runs: able, others: runs.length - able.length })}
          >
            {label}
          </RefusableButton>
        );
      })}
      {open?.deed === "tag" && <TagManyDialog {...open} onClose={() => setOpen(null)} />}
      {(open?.deed === "stop" || open?.deed === "remove") && (
        <ConfirmManyDialog {...open} deed={open.deed} onClose={() => setOpen(null)} />
      )}
    </>
  );
}

/** One after the other, so that one refusal does not keep the rest from being done. */
export async function actOnAll(client: QueryClient, runs: readonly RunInfo[], act: Act): Promise<BulkResult> {
  const result: BulkResult = { done: [], refused: [] };
  for (const run of runs)
    try {
      await act(client, run.id);
      result.done.push(run.id);
    } catch (error) {
      result.refused.push({
        name: run.name || run.id,
        message: error instanceof Error ? error.message : String(error),
      });
    }
  return result;
}

function useBulk(runs: readonly RunInfo[], onClose: () => void) {
  const client = useQueryClient();
  const [left, setLeft] = useState(runs);
  const change = useChange<Act, BulkResult>({
    send: (act) => actOnAll(client, left, act),
    onDone: (result) => {
      announce(words.done(result.done.length));
      setLeft((before) => before.filter((run) => !result.done.includes(run.id)));
      if (result.refused.length === 0) onClose();
    },
  });
  return { ...change, left };
}

type DialogProps = { runs: readonly RunInfo[]; others: number; onClose: () => void };

function ConfirmManyDialog({ deed, runs, others, onClose }: DialogProps & { deed: "stop" | "remove" }) {
  const bulk = useBulk(runs, onClose);
  const isStop = deed === "stop";
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={(isStop ? words.stopTitle : words.removeTitle)(bulk.left.length)}
      action={isStop ? actionWords.stop.button : actionWords.remove.button}
      onConfirm={() => bulk.submit(isStop ? stopRun : deleteRun)}
      isBusy={bulk.isBusy}
      error={bulk.error}
    >
      <p>{isStop ? words.stopText : words.removeText}</p>
      {others > 0 && <p>{words.others(others)}</p>}
      <Refused result={bulk.answer} />
    </ConfirmDialog>
  );
}

function TagManyDialog({ runs, others, onClose }: DialogProps) {
  const [tag, setTag] = useState("");
  const bulk = useBulk(runs, onClose);
  const name = tag.trim();
  const isOff = bulk.isBusy || name === "";
  const add = (event: FormEvent) => {
    event.preventDefault();
    if (!isOff) bulk.submit((client, id) => editRun(client, id, { add_tags: [name] }));
  };
  return (
    <Dialog open onClose={onClose} title={words.tagTitle(bulk.left.length)}>
      <form className={styles.form} onSubmit={add}>
        {others > 0 && <p>{words.others(others)}</p>}
        <TagField text={tag} onChange={setTag} />
        <Refused result={bulk.answer} />
        <Problem error={bulk.error} />
        <div className={styles.buttons}>
          <Button
            disabled={isOff}
            onClick={() => bulk.submit((client, id) => editRun(client, id, { remove_tags: [name] }))}
          >
            {words.removeTag}
          </Button>
          <Button type="submit" look="primary" disabled={isOff}>
            {words.add}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function Refused({ result }: { result: BulkResult | undefined }) {
  if (!result || result.refused.length === 0) return null;
  return (
    <ul className={styles.refused} role="alert">
      {result.refused.map(({ name, message }) => (
        <li key={`${name} ${message}`}>{words.refused(name, message)}</li>
      ))}
    </ul>
  );
}
