/** Add a repository; afterwards, the secret of its webhook, which is shown once. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { type FieldProblems, useChange } from "#/api/change";
import { api, read } from "#/api/client";
import { sessionQuery } from "#/api/session";
import { type AddedSource, type NewSource, SOURCES_KEY } from "#/api/sources";
import { Button } from "#/design/Button";
import { CodeBlock } from "#/design/CodeBlock";
import { Dialog } from "#/design/Dialog";
import { Select } from "#/design/Select";
import { TextArea } from "#/design/TextArea";
import { TextField } from "#/design/TextField";
import { Problem } from "#/parts/Problem";
import { words } from "#/words";
import styles from "./sources.module.css";
import { text } from "./words";

const isSsh = (url: string): boolean => /^(ssh:|[^/:\s]+@[^/:\s]+:)/.test(url.trim());
const isHttps = (url: string): boolean => /^https?:/.test(url.trim());

export function AddDialog({ onClose }: { onClose: () => void }) {
  const [added, setAdded] = useState<AddedSource | null>(null);
  return (
    <Dialog open onClose={onClose} title={added ? text.add.doneTitle : text.add.title}>
      {added ? <Added added={added} /> : <AddForm onClose={onClose} onDone={setAdded} />}
    </Dialog>
  );
}

type Form = { url: string; name: string; owner: string; token: string; username: string; key: string };

const buildSource = (form: Form, me: string): NewSource => ({
  url: form.url.trim(),
  name: form.name.trim(),
  team: form.owner && form.owner !== me ? form.owner : null,
  ...(isHttps(form.url) ? { token: form.token, username: form.username } : {}),
  ...(isSsh(form.url) ? { key: form.key } : {}),
});

function AddForm({ onClose, onDone }: { onClose: () => void; onDone: (added: AddedSource) => void }) {
  const { data: session } = useQuery(sessionQuery);
  const me = session?.user?.name ?? "";
  const [form, setForm] = useState<Form>({ url: "", name: "", owner: me, token: "", username: "", key: "" });
  const set = (change: Partial<Form>) => setForm((now) => ({ ...now, ...change }));
  const add = useChange<NewSource, AddedSource>({
    send: (body, key) =>
      read(api.POST("/api/v1/sources", { params: { header: { "Idempotency-Key": key } }, body })),
    refresh: [SOURCES_KEY],
    onDone,
  });
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (!form.url.trim()) return;
    add.submit(buildSource(form, me));
  };
  const owners = [me, ...(session?.teams ?? []).map(({ team }) => team)];
  return (
    <form className={styles.form} onSubmit={onSubmit}>
      <TextField
        label={text.add.url}
        hint={text.add.urlHint}
        value={form.url}
        spellCheck={false}
        autoComplete="off"
        autoFocus
        onChange={(event) => set({ url: event.target.value })}
        error={add.problems.url}
      />
      <Credentials form={form} onChange={set} problems={add.problems} />
      <div className={styles.pair}>
        <TextField
          label={text.add.name}
          hint={text.add.nameHint}
          value={form.name}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => set({ name: event.target.value })}
          error={add.problems.name}
        />
        <Select
          label={text.add.owner}
          value={form.owner || me}
          options={owners.map((value) => ({
            value,
            label: value === me ? text.add.yourself(value) : value,
          }))}
          onChange={(owner) => set({ owner })}
          error={add.problems.team}
        />
      </div>
      <Problem error={add.error} fields={["url", "name", "token", "username", "key", "team"]} />
      <div className={styles.buttons}>
        <Button onClick={onClose}>{words.confirm.cancel}</Button>
        <Button type="submit" look="primary" disabled={!form.url.trim() || add.isBusy}>
          {text.add.submit}
        </Button>
      </div>
    </form>
  );
}

type CredentialsProps = {
  form: Form;
  onChange: (change: Partial<Form>) => void;
  problems: FieldProblems;
};

/** What opens the repository: a token over https, a key over ssh, nothing for a path on the server. */
function Credentials({ form, onChange: set, problems }: CredentialsProps) {
  return (
    <>
      {isHttps(form.url) && (
        <div className={styles.pair}>
          <TextField
            label={text.add.token}
            hint={text.add.tokenHint}
            type="password"
            autoComplete="off"
            value={form.token}
            onChange={(event) => set({ token: event.target.value })}
            error={problems.token}
          />
          <TextField
            label={text.add.username}
            hint={text.add.usernameHint}
            autoComplete="off"
            value={form.username}
            onChange={(event) => set({ username: event.target.value })}
            error={problems.username}
          />
        </div>
      )}
      {isSsh(form.url) && (
        <TextArea
          label={text.add.key}
          hint={text.add.keyHint}
          code
          value={form.key}
          onChange={(event) => set({ key: event.target.value })}
          error={problems.key}
        />
      )}
    </>
  );
}

function Added({ added }: { added: AddedSource }) {
  const navigate = useNavigate();
  return (
    <div className={styles.form}>
      <p>{text.add.done}</p>
      <CodeBlock text={added.source.webhook_url ?? ""} label={text.add.address} wrap />
      <CodeBlock text={added.webhook_secret} label={text.add.secret} wrap />
      <div className={styles.buttons}>
        <Button
          look="primary"
          onClick={() => void navigate({ to: "/sources/$sourceId", params: { sourceId: added.source.id } })}
        >
          {text.add.go}
        </Button>
      </div>
    </div>
  );
}
