/** Choose a file, its name and its owner; the upload itself goes on after the dialog has closed. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type FieldProblems, useChange } from "#/api/change";
import { api, read } from "#/api/client";
import { DATASETS_KEY, type DatasetUploadInfo, UPLOADS_KEY } from "#/api/datasets";
import { sessionQuery } from "#/api/session";
import { Button } from "#/design/Button";
import { Dialog } from "#/design/Dialog";
import { Field } from "#/design/Field";
import { Select } from "#/design/Select";
import { TextArea } from "#/design/TextArea";
import { TextField } from "#/design/TextField";
import { Problem } from "#/parts/Problem";
import { words } from "#/words";
import styles from "./datasets.module.css";
import { findFormat, startUpload, suggestName } from "./uploads";
import { text } from "./words";

/** The dataset that a new version is for, if it is known. */
export type Target = { owner: string; name: string };

type Props = { open: boolean; onClose: () => void; target?: Target };
type Visibility = "private" | "public";

export function UploadDialog({ open, onClose, target }: Props) {
  return (
    <Dialog open={open} onClose={onClose} title={target ? text.upload.newVersion : text.upload.title}>
      <UploadForm onClose={onClose} {...(target ? { target } : {})} />
    </Dialog>
  );
}

type Form = { owner: string; name: string; visibility: Visibility; description: string };

function UploadForm({ onClose, target }: Omit<Props, "open">) {
  const me = useQuery(sessionQuery).data?.user?.name ?? "";
  const [file, setFile] = useState<File | null>(null);
  const [form, setForm] = useState<Form>({
    owner: target?.owner ?? me,
    name: target?.name ?? "",
    visibility: "private",
    description: "",
  });
  const set = (change: Partial<Form>) => setForm((now) => ({ ...now, ...change }));
  const format = file ? findFormat(file.name) : null;
  const begin = useBegin(form, !target, onClose);
  const isReady = file !== null && format !== null && form.name.trim() !== "";
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (isReady) begin.submit(file);
  };
  const choose = (chosen: File | null) => {
    setFile(chosen);
    if (chosen && !target && !form.name) set({ name: suggestName(chosen.name) });
  };
  return (
    <form className={styles.form} onSubmit={onSubmit}>
      <Field
        label={text.upload.file}
        hint={text.upload.fileHint}
        error={file && !format ? text.upload.badFile : begin.problems.size}
      >
        {(control) => (
          <input
            {...control}
            type="file"
            className={styles.file}
            accept=".jsonl,.csv,.parquet"
            onChange={(event) => choose(event.target.files?.[0] ?? null)}
          />
        )}
      </Field>
      {!target && <DatasetFields me={me} form={form} onChange={set} problems={begin.problems} />}
      <Problem error={begin.error} fields={["size", "name", "owner", "description"]} />
      <div className={styles.buttons}>
        <Button onClick={onClose}>{words.confirm.cancel}</Button>
        <Button type="submit" look="primary" disabled={!isReady || begin.isBusy}>
          {text.upload.start}
        </Button>
      </div>
    </form>
  );
}

/** Reserves room on the server, then sends the file in the background. */
function useBegin(form: Form, isNew: boolean, onClose: () => void) {
  const client = useQueryClient();
  const refresh = () => {
    void client.invalidateQueries({ queryKey: UPLOADS_KEY });
    void client.invalidateQueries({ queryKey: DATASETS_KEY });
  };
  const { owner, visibility, description } = form;
  return useChange<File, DatasetUploadInfo>({
    send: (file, key) =>
      read(
        api.POST("/api/v1/datasets/{owner}/{name}/uploads", {
          params: { path: { owner, name: form.name.trim() }, header: { "Idempotency-Key": key } },
          body: {
            size: file.size,
            format: findFormat(file.name) ?? "jsonl",
            ...(isNew ? { visibility, description } : {}),
          },
        }),
      ),
    onDone: (upload, file) => {
      startUpload(upload, file, refresh);
      refresh();
      onClose();
    },
  });
}

type FieldsProps = {
  me: string;
  form: Form;
  onChange: (change: Partial<Form>) => void;
  problems: FieldProblems;
};

function DatasetFields({ me, form, onChange, problems }: FieldsProps) {
  const { data: session } = useQuery(sessionQuery);
  const owners = [me, ...(session?.teams ?? []).map(({ team }) => team)];
  return (
    <>
      <Select
        label={text.upload.owner}
        value={form.owner}
        options={owners.map((value) => ({
          value,
          label: value === me ? text.upload.yourself(value) : value,
        }))}
        onChange={(owner) => onChange({ owner })}
        error={problems.owner}
      />
      <TextField
        label={text.upload.name}
        hint={text.upload.nameHint}
        value={form.name}
        spellCheck={false}
        autoComplete="off"
        maxLength={100}
        onChange={(event) => onChange({ name: event.target.value })}
        error={problems.name}
      />
      <VisibilityField value={form.visibility} onChange={(visibility) => onChange({ visibility })} />
      <TextArea
        label={text.change.description}
        rows={2}
        maxLength={2000}
        value={form.description}
        onChange={(event) => onChange({ description: event.target.value })}
        error={problems.description}
      />
    </>
  );
}

export function VisibilityField(props: { value: Visibility; onChange: (value: Visibility) => void }) {
  return (
    <Select
      label={text.change.visibility}
      value={props.value}
      options={(["private", "public"] as const).map((value) => ({
        value,
        label: text.visibility[value] ?? value,
      }))}
      onChange={props.onChange}
      hint={props.value === "public" ? text.change.publicHint : text.change.privateHint}
    />
  );
}
