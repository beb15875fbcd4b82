/** The note on a run: Markdown, shown and edited in its place. */
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useChange } from "#/api/change";
import { editRun, readCurrent } from "#/api/runActions";
import type { RunInfo } from "#/api/types";
import { Button } from "#/design/Button";
import { Section } from "#/design/Section";
import { TextArea } from "#/design/TextArea";
import { Markdown } from "#/parts/Markdown";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import styles from "./actions.module.css";
import { refuseChange, useSession } from "./rights";
import { actionWords } from "./words";

const words = actionWords.note;

export function Note({ run }: { run: RunInfo }) {
  const session = useSession();
  const [isEditing, setEditing] = useState(false);
  if (!session?.has_logins || (!run.note && !run.may_change)) return null;
  const button = (
    <RefusableButton
      small
      look="quiet"
      {...(run.note ? {} : { icon: "plus" as const })}
      reason={refuseChange(session, run)}
      onClick={() => setEditing(true)}
    >
      {run.note ? words.edit : words.add}
    </RefusableButton>
  );
  if (!run.note && !isEditing) return <div>{button}</div>;
  return (
    <Section title={words.title} actions={!isEditing && button}>
      {isEditing ? <NoteForm run={run} onClose={() => setEditing(false)} /> : <Markdown text={run.note} />}
    </Section>
  );
}

function NoteForm({ run, onClose }: { run: RunInfo; onClose: () => void }) {
  const client = useQueryClient();
  const [opened] = useState(run.note);
  const [note, setNote] = useState(run.note);
  const save = useChange<{ note: string; seen: string }, RunInfo>({
    send: ({ note: next, seen }) =>
      editRun(client, run.id, { note: next, before: { name: null, note: seen } }),
    onDone: onClose,
  });
  const current = readCurrent(save.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.submit({ note, seen: current ?? opened });
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <TextArea
        label={words.label}
        hideLabel
        hint={words.hint}
        autoFocus
        maxLength={2000}
        value={note}
        error={save.problems.note}
        onChange={(event) => setNote(event.target.value)}
      />
      {current !== null && <p className={styles.text}>{current}</p>}
      <Problem error={save.error} fields={["note"]} />
      <div className={styles.buttons}>
        <Button onClick={onClose}>{actionWords.cancel}</Button>
        <Button type="submit" look="primary" disabled={save.isBusy}>
          {actionWords.save}
        </Button>
      </div>
    </form>
  );
}
