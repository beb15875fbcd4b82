/** A few fields above the page, and one button that sends them. It stays until the server has answered. */
import type { FormEvent, ReactNode } from "react";
import { Button } from "#/design/Button";
import { Dialog } from "#/design/Dialog";
import { words } from "#/words";
import styles from "./ConfirmDialog.module.css";
import { Problem } from "./Problem";

type Props = {
  title: string;
  onClose: () => void;
  /** The deed, as a verb. */
  action: string;
  onSubmit: () => void;
  isBusy: boolean;
  error: Error | null;
  /** Fields that show their own problem. */
  fields?: readonly string[];
  children: ReactNode;
};

export function FormDialog(props: Props) {
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (!props.isBusy) props.onSubmit();
  };
  return (
    <Dialog open onClose={props.onClose} title={props.title}>
      <form className={styles.form} onSubmit={onSubmit}>
        {props.children}
        <Problem error={props.error} fields={props.fields ?? []} />
        <div className={styles.buttons}>
          <Button onClick={props.onClose}>{words.confirm.cancel}</Button>
          <Button type="submit" look="primary" disabled={props.isBusy}>
            {props.action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
