/** A field for text with its label; the label may be hidden from sight where the place says it. */
import { type ComponentProps, useId } from "react";
import { classes } from "./classes";
import { Icon, type IconName } from "./Icon";
import styles from "./TextField.module.css";

type Props = {
  label: string;
  hideLabel?: boolean;
  icon?: IconName;
  hint?: string;
  error?: string | undefined;
};

export function TextField(props: Props & Omit<ComponentProps<"input">, "id">) {
  const { label, hideLabel = false, icon, hint, error, className, ...rest } = props;
  const id = useId();
  return (
    <div className={classes(styles.field, className)}>
      <label htmlFor={id} className={classes(styles.label, hideLabel && styles.hidden)}>
        {label}
      </label>
      <div className={styles.box}>
        {icon && <Icon name={icon} />}
        <input
          {...rest}
          id={id}
          className={styles.input}
          aria-invalid={error ? true : undefined}
          aria-describedby={error || hint ? `${id}-note` : undefined}
        />
      </div>
      {(error || hint) && (
        <p id={`${id}-note`} className={error ? styles.error : styles.hint}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}
