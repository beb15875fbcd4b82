/** A field for text of several lines; as code, its letters are all of one width. */
import type { ComponentProps } from "react";
import { classes } from "./classes";
import { Field, type FieldProps } from "./Field";
import styles from "./TextField.module.css";

type Props = FieldProps & { code?: boolean } & Omit<ComponentProps<"textarea">, "id">;

export function TextArea({ label, hideLabel, hint, error, code = false, className, ...rest }: Props) {
  return (
    <Field {...{ label, hint, error, className }} hideLabel={hideLabel ?? false}>
      {(control) => (
        <div className={classes(styles.box, styles.area)}>
          <textarea
            rows={4}
            spellCheck={!code}
            {...rest}
            {...control}
            className={classes(styles.input, code && styles.code)}
          />
        </div>
      )}
    </Field>
  );
}
