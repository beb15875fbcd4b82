/** Ask for a name and a value, or for a new value. What is typed is gone when the dialog closes. */
import { useState } from "react";
import { SECRET_KEY } from "#/api/account";
import { useChange } from "#/api/change";
import { Select } from "#/design/Select";
import { TextArea } from "#/design/TextArea";
import { TextField } from "#/design/TextField";
import { FormDialog } from "#/parts/FormDialog";
import { text } from "./words";

const words = text.secrets;

export type NewValue = { name: string; value: string; description?: string; team?: string | null };

type NewProps = {
  title: string;
  valueHint: string;
  isSecret: boolean;
  /** Whose it may be besides your own. */
  teams?: readonly string[];
  send: (body: NewValue, key: string) => Promise<unknown>;
  onClose: () => void;
};

export function NewValueDialog({ title, valueHint, isSecret, teams = [], send, onClose }: NewProps) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const [team, setTeam] = useState("");
  const [description, setDescription] = useState("");
  const add = useChange<NewValue>({ send, refresh: [SECRET_KEY], onDone: onClose });
  const more = { ...(description ? { description } : {}), ...(team ? { team } : {}) };
  return (
    <FormDialog
      title={title}
      onClose={onClose}
      action={words.add}
      onSubmit={() => add.submit({ name: name.trim(), value, ...(isSecret ? more : {}) })}
      isBusy={add.isBusy}
      error={add.error}
      fields={["name", "value", "description", "team"]}
    >
      <TextField
        label={words.name}
        hint={words.nameHint}
        value={name}
        required
        autoComplete="off"
        spellCheck={false}
        error={add.problems.name}
        onChange={(event) => setName(event.target.value)}
      />
      <ValueField
        value={value}
        isSecret={isSecret}
        hint={valueHint}
        error={add.problems.value}
        onChange={setValue}
      />
      {isSecret && (
        <TextField
          label={words.description}
          value={description}
          maxLength={2000}
          error={add.problems.description}
          onChange={(event) => setDescription(event.target.value)}
        />
      )}
      {teams.length > 0 && (
        <Select
          label={words.owner}
          value={team}
          options={[
            { value: "", label: words.yourself },
            ...teams.map((each) => ({ value: each, label: each })),
          ]}
          onChange={setTeam}
        />
      )}
    </FormDialog>
  );
}

type ReplaceProps = {
  name: string;
  isSecret: boolean;
  send: (value: string) => Promise<unknown>;
  onClose: () => void;
};

export function ReplaceDialog({ name, isSecret, send, onClose }: ReplaceProps) {
  const [value, setValue] = useState("");
  const replace = useChange<string>({ send, refresh: [SECRET_KEY], onDone: onClose });
  return (
    <FormDialog
      title={words.replaceOf(name)}
      onClose={onClose}
      action={words.save}
      onSubmit={() => replace.submit(value)}
      isBusy={replace.isBusy}
      error={replace.error}
      fields={["value"]}
    >
      <p>{words.replaceText}</p>
      <ValueField
        value={value}
        isSecret={isSecret}
        hint={isSecret ? words.valueHint : words.variableHint}
        error={replace.problems.value}
        onChange={setValue}
      />
    </FormDialog>
  );
}

type FieldProps = {
  value: string;
  isSecret: boolean;
  hint: string;
  error: string | undefined;
  onChange: (value: string) => void;
};

function ValueField({ value, isSecret, hint, error, onChange }: FieldProps) {
  if (!isSecret)
    return (
      <TextArea
        label={words.value}
        hint={hint}
        code
        rows={3}
        value={value}
        error={error}
        onChange={(event) => onChange(event.target.value)}
      />
    );
  return (
    <TextField
      label={words.value}
      hint={hint}
      type="password"
      autoComplete="new-password"
      spellCheck={false}
      required
      value={value}
      error={error}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}
