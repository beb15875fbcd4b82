/** A field for text with its label. */
import type { ComponentProps } from "react";
import { Field, type FieldProps } from "./Field";
import { Icon, type IconName } from "./Icon";
import styles from "./TextField.module.css";

type Props = FieldProps & { icon?: IconName } & Omit<ComponentProps<"input">, "id">;

export function TextField({ label, hideLabel, hint, error, icon, className, ...rest }: Props) {
  return (
    <Field {...{ label, hint, error, className }} hideLabel={hideLabel ?? false}>
      {(control) => (
        <div className={styles.box}>
          {icon && <Icon name={icon} />}
          <input {...rest} {...control} className={styles.input} />
        </div>
      )}
    </Field>
  );
}
