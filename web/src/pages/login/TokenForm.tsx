/** The field for a token, and the command that needs none. */
import { type FormEvent, useState } from "react";
import { Button } from "#/design/Button";
import { CodeBlock } from "#/design/CodeBlock";
import { TextField } from "#/design/TextField";
import { words } from "#/words";
import styles from "./LoginPage.module.css";
import { text } from "./words";

type Props = { onSubmit: (token: string) => void; isBusy: boolean; error: string | undefined };

export function TokenForm({ onSubmit, isBusy, error }: Props) {
  const [token, setToken] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim() && !isBusy) onSubmit(token.trim());
  };
  return (
    <form className={styles.form} onSubmit={submit}>
      <TextField
        label={words.session.token}
        type="password"
        autoComplete="current-password"
        spellCheck={false}
        value={token}
        onChange={(event) => setToken(event.target.value)}
        hint={words.session.tokenHint}
        error={error}
      />
      <Button type="submit" look="primary" disabled={isBusy || token.trim() === ""}>
        {words.session.logIn}
      </Button>
      <div className={styles.other}>
        <h2>{text.link}</h2>
        <p>{text.linkHint}</p>
        <CodeBlock text={`proctor dashboard ${location.origin}`} wrap />
      </div>
    </form>
  );
}
