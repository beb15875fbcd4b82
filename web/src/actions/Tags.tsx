/** The tags of a run, each a link to the runs that share it, and the dialog that changes them. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useId, useState } from "react";
import { useChange } from "#/api/change";
import { editRun } from "#/api/runActions";
import { runFacetsQuery } from "#/api/runs";
import type { RunInfo } from "#/api/types";
import { Button, IconButton } from "#/design/Button";
import { Dialog } from "#/design/Dialog";
import { TextField } from "#/design/TextField";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import styles from "./actions.module.css";
import { refuseChange, useSession } from "./rights";
import { actionWords } from "./words";

const words = actionWords.tags;

export function Tags({ run }: { run: RunInfo }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <span className={styles.tags}>
      {run.tags.map((tag) => (
        <Link key={tag} to="/runs" search={{ tag: [tag] }} className={styles.tag} title={words.filter(tag)}>
          <span>{tag}</span>
        </Link>
      ))}
      <TagsButton run={run} onClick={() => setOpen(true)} />
      {isOpen && <TagDialog run={run} onClose={() => setOpen(false)} />}
    </span>
  );
}

export function TagsButton({ run, onClick }: { run: RunInfo; onClick: () => void }) {
  const session = useSession();
  if (!session?.has_logins) return null;
  return (
    <RefusableButton look="quiet" small icon="plus" reason={refuseChange(session, run)} onClick={onClick}>
      {words.edit}
    </RefusableButton>
  );
}

export function TagDialog({ run, onClose }: { run: RunInfo; onClose: () => void }) {
  const client = useQueryClient();
  const [text, setText] = useState("");
  const edit = useChange<{ add_tags?: string[]; remove_tags?: string[] }, RunInfo>({
    send: (change) => editRun(client, run.id, change),
    onDone: (_, change) => {
      if (change.add_tags) setText("");
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (text.trim()) edit.submit({ add_tags: [text.trim()] });
  };
  return (
    <Dialog open onClose={onClose} title={words.title}>
      <form className={styles.form} onSubmit={submit}>
        {run.tags.length === 0 && <p>{words.none}</p>}
        <span className={styles.tags}>
          {run.tags.map((tag) => (
            <span key={tag} className={styles.tag}>
              <span>{tag}</span>
              <IconButton
                label={words.remove(tag)}
                icon="close"
                disabled={edit.isBusy}
                onClick={() => edit.submit({ remove_tags: [tag] })}
              />
            </span>
          ))}
        </span>
        <TagField text={text} onChange={setText} error={edit.problems.add_tags} />
        <Problem error={edit.error} fields={["add_tags"]} />
        <div className={styles.buttons}>
          <Button type="submit" look="primary" disabled={edit.isBusy || text.trim() === ""}>
            {words.addButton}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

type FieldProps = { text: string; onChange: (text: string) => void; error?: string | undefined };

/** Offers the tags that other runs have. */
export function TagField({ text, onChange, error }: FieldProps) {
  const facets = useQuery(runFacetsQuery({}));
  const id = useId();
  return (
    <>
      <TextField
        label={words.add}
        hint={words.hint}
        error={error}
        maxLength={50}
        autoComplete="off"
        list={id}
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={id}>
        {facets.data?.tag.map(({ value }) => (
          <option key={value} value={value} />
        ))}
      </datalist>
    </>
  );
}
