/** A new name for a run. If somebody else renames it meanwhile, the form says so, and nobody's name is lost. */
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type KeyboardEvent, useState } from "react";
import { useChange } from "#/api/change";
import { editRun, readCurrent } from "#/api/runActions";
import type { RunInfo } from "#/api/types";
import { announce } from "#/app/announcer";
import { Button } from "#/design/Button";
import { TextField } from "#/design/TextField";
import { Problem } from "#/parts/Problem";
import styles from "./actions.module.css";
import { actionWords } from "./words";

const words = actionWords.rename;

export function RenameForm({ run, onClose }: { run: RunInfo; onClose: () => void }) {
  const client = useQueryClient();
  const [opened] = useState(run.name);
  const [name, setName] = useState(run.name);
  const rename = useChange<{ name: string; seen: string }, RunInfo>({
    send: ({ name: next, seen }) =>
      editRun(client, run.id, { name: next, before: { name: seen, note: null } }),
    onDone: () => {
      announce(words.done);
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    rename.submit({ name: name.trim(), seen: readCurrent(rename.error) ?? opened });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
  };
  return (
    <form className={styles.rename} onSubmit={submit} onKeyDown={onKeyDown}>
      <TextField
        label={words.label}
        hideLabel
        autoFocus
        autoComplete="off"
        maxLength={200}
        value={name}
        hint={run.name === opened ? undefined : actionWords.meanwhile(run.name)}
        error={rename.problems.name}
        onChange={(event) => setName(event.target.value)}
      />
      <Button type="submit" look="primary" small disabled={rename.isBusy}>
        {actionWords.save}
      </Button>
      <Button small onClick={onClose}>
        {actionWords.cancel}
      </Button>
      <Problem error={rename.error} fields={["name"]} />
    </form>
  );
}
