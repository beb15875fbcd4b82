/** A choice of one among a few, as the browser's own control; a list to search is a page of its own. */
import { Field, type FieldProps } from "./Field";
import styles from "./TextField.module.css";

export type Option<Value extends string> = { value: Value; label: string; disabled?: boolean };

type Props<Value extends string> = FieldProps & {
  value: Value;
  options: readonly Option<Value>[];
  onChange: (value: Value) => void;
  disabled?: boolean;
  className?: string;
};

export function Select<Value extends string>(props: Props<Value>) {
  const { value, options, onChange, disabled = false, className, label, hideLabel, hint, error } = props;
  return (
    <Field {...{ label, hint, error, className }} hideLabel={hideLabel ?? false}>
      {(control) => (
        <div className={styles.box}>
          <select
            {...control}
            className={styles.input}
            value={value}
            disabled={disabled}
            onChange={(event) => onChange(event.target.value as Value)}
          >
            {options.map((option) => (
              <option key={option.value} value={option.value} disabled={option.disabled}>
                {option.label}
              </option>
            ))}
          </select>
        </div>
      )}
    </Field>
  );
}
