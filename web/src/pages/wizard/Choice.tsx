/** Fields of the wizard that are text in its address, with the problem that the server has with them. */
import { TextArea } from "#/design/TextArea";
import { TextField } from "#/design/TextField";
import type { TextName } from "./search";
import type { Wizard } from "./useWizard";

type Props = { wizard: Wizard };
type ChoiceProps = Props & {
  name: TextName;
  field: string;
  label: string;
  hint?: string;
  placeholder?: string | undefined;
  isNumber?: boolean;
};

/** A choice that is one line of text. */
export function Choice({ wizard, name, field, label, hint, placeholder, isNumber = false }: ChoiceProps) {
  return (
    <TextField
      label={label}
      {...(hint ? { hint } : {})}
      error={wizard.server.problems[field]}
      value={wizard.choices[name] ?? ""}
      placeholder={placeholder}
      autoComplete="off"
      spellCheck={false}
      {...(isNumber ? { inputMode: "decimal" as const } : {})}
      onChange={(event) => wizard.change({ [name]: event.target.value })}
    />
  );
}

/** A choice that is a JSON object. */
export function JsonChoice(
  props: Props & { name: TextName; field: string; label: string; hint?: string; isHidden?: boolean },
) {
  const { wizard, name } = props;
  return (
    <TextArea
      code
      rows={3}
      label={props.label}
      hideLabel={props.isHidden ?? false}
      {...(props.hint ? { hint: props.hint } : {})}
      error={wizard.server.problems[props.field]}
      value={wizard.choices[name] ?? ""}
      placeholder="{}"
      onChange={(event) => wizard.change({ [name]: event.target.value })}
    />
  );
}
