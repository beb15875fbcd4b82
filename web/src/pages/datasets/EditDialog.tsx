/** Change who may read a dataset, and what is said of it. */
import { type FormEvent, useState } from "react";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import { DATASETS_KEY, type DatasetInfo } from "#/api/datasets";
import { Button } from "#/design/Button";
import { Dialog } from "#/design/Dialog";
import { TextArea } from "#/design/TextArea";
import { Problem } from "#/parts/Problem";
import { words } from "#/words";
import styles from "./datasets.module.css";
import { VisibilityField } from "./UploadDialog";
import { text } from "./words";

export function EditDialog({ dataset, onClose }: { dataset: DatasetInfo; onClose: () => void }) {
  const [visibility, setVisibility] = useState(dataset.visibility);
  const [description, setDescription] = useState(dataset.description ?? "");
  const { owner, name } = dataset;
  const save = useChange({
    send: () =>
      read(
        api.PATCH("/api/v1/datasets/{owner}/{name}", {
          params: { path: { owner, name } },
          body: { visibility, description },
        }),
      ),
    refresh: [DATASETS_KEY],
    onDone: onClose,
  });
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    save.submit();
  };
  return (
    <Dialog open onClose={onClose} title={text.change.title}>
      <form className={styles.form} onSubmit={onSubmit}>
        <VisibilityField value={visibility} onChange={setVisibility} />
        <TextArea
          label={text.change.description}
          maxLength={2000}
          value={description}
          onChange={(event) => setDescription(event.target.value)}
          error={save.problems.description}
        />
        <Problem error={save.error} fields={["description"]} />
        <div className={styles.buttons}>
          <Button onClick={onClose}>{words.confirm.cancel}</Button>
          <Button type="submit" look="primary" disabled={save.isBusy}>
            {text.change.save}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
