/** The label, the hint and the error of a control. What is wrong stands in place of the hint, and is read out. */
import { type ReactNode, useId } from "react";
import { classes } from "./classes";
import styles from "./Field.module.css";

export type FieldProps = {
  label: string;
  /** Where the place already says what the control is for. */
  hideLabel?: boolean;
  hint?: ReactNode;
  error?: string | undefined;
};

/** What ties a control to its label and to its note. */
export type ControlProps = {
  id: string;
  "aria-invalid"?: true;
  "aria-describedby"?: string;
};

type Props = FieldProps & { className?: string | undefined; children: (control: ControlProps) => ReactNode };

export function Field({ label, hideLabel = false, hint, error, className, children }: Props) {
  const id = useId();
  const note = error ?? hint;
  const control: ControlProps = { id };
  if (error) control["aria-invalid"] = true;
  if (note) control["aria-describedby"] = `${id}-note`;
  return (
    <div className={classes(styles.field, className)}>
      <label htmlFor={id} className={classes(styles.label, hideLabel && styles.hidden)}>
        {label}
      </label>
      {children(control)}
      {note && (
        <p id={`${id}-note`} className={error ? styles.error : styles.hint}>
          {note}
        </p>
      )}
    </div>
  );
}
