/** Asks before something that cannot be taken back. The dialog stays until the server has answered. */
import { type FormEvent, type ReactNode, useState } from "react";
import { Button } from "#/design/Button";
import { Dialog } from "#/design/Dialog";
import { TextField } from "#/design/TextField";
import { words } from "#/words";
import styles from "./ConfirmDialog.module.css";
import { Problem } from "./Problem";

type Props = {
  open: boolean;
  onClose: () => void;
  title: string;
  /** What will happen, and what will be lost. */
  children: ReactNode;
  /** The deed, as a verb: "Delete", never "OK". */
  action: string;
  look?: "danger" | "primary";
  onConfirm: () => void;
  isBusy: boolean;
  error: Error | null;
  /** A name to type first, for what is lost for good. */
  typed?: string;
};

export function ConfirmDialog(props: Props) {
  const [text, setText] = useState("");
  const mayAct = props.typed === undefined || text.trim() === props.typed;
  const close = () => {
    setText("");
    props.onClose();
  };
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (mayAct && !props.isBusy) props.onConfirm();
  };
  return (
    <Dialog open={props.open} onClose={close} title={props.title}>
      <form className={styles.form} onSubmit={onSubmit}>
        {props.children}
        {props.typed !== undefined && (
          <TextField
            label={words.confirm.type(props.typed)}
            value={text}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setText(event.target.value)}
          />
        )}
        <Problem error={props.error} />
        <div className={styles.buttons}>
          <Button onClick={close}>{words.confirm.cancel}</Button>
          <Button type="submit" look={props.look ?? "danger"} disabled={!mayAct || props.isBusy}>
            {props.action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
