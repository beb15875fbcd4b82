/** A field for a comment, new or edited. */
import type { FormEvent, KeyboardEvent, ReactNode } from "react";
import type { Change } from "#/api/change";
import type { RunComment } from "#/api/types";
import { Button } from "#/design/Button";
import { TextArea } from "#/design/TextArea";
import { Problem } from "#/parts/Problem";
import styles from "./comments.module.css";
import { commentWords as words } from "./words";

const LONGEST = 10_000;

type Props = {
  id?: string;
  text: string;
  onText: (text: string) => void;
  change: Change<string, RunComment>;
  action: string;
  onCancel?: () => void;
  /** What it is about. */
  children?: ReactNode;
};

export function CommentForm({ id, text, onText, change, action, onCancel, children }: Props) {
  const send = () => {
    if (text.trim()) change.submit(text);
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    send();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
  };
  return (
    <form id={id} className={styles.form} onSubmit={onSubmit} onKeyDown={onKeyDown}>
      <TextArea
        label={words.text}
        hint={words.hint}
        rows={3}
        maxLength={LONGEST}
        value={text}
        error={change.problems.text}
        onChange={(event) => onText(event.target.value)}
      />
      <Problem error={change.error} fields={["text"]} />
      {children}
      <div className={styles.buttons}>
        {onCancel && (
          <Button small onClick={onCancel}>
            {words.cancel}
          </Button>
        )}
        <Button type="submit" look="primary" small disabled={change.isBusy || text.trim() === ""}>
          {action}
        </Button>
      </div>
    </form>
  );
}
