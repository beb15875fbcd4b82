/** A setting that is on or off, with a line on what it means. */
import { useId } from "react";
import styles from "./Switch.module.css";

type Props = {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  hint?: string;
  error?: string | undefined;
  disabled?: boolean;
};

export function Switch({ label, checked, onChange, hint, error, disabled = false }: Props) {
  const id = useId();
  const note = error ?? hint;
  return (
    <div className={styles.line}>
      <input
        id={id}
        type="checkbox"
        role="switch"
        aria-checked={checked}
        className={styles.switch}
        checked={checked}
        disabled={disabled}
        aria-invalid={error ? true : undefined}
        aria-describedby={note ? `${id}-note` : undefined}
        onChange={(event) => onChange(event.target.checked)}
      />
      <label htmlFor={id}>{label}</label>
      {note && (
        <p id={`${id}-note`} className={error ? styles.error : styles.note}>
          {note}
        </p>
      )}
    </div>
  );
}
