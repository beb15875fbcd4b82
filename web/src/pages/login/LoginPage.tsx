/** Log in with a token, or with the one-time code of a link, which stands in the fragment. */
import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { ApiError } from "#/api/client";
import { logIn } from "#/api/session";
import { Button } from "#/design/Button";
import { CodeBlock } from "#/design/CodeBlock";
import { TextField } from "#/design/TextField";
import { words } from "#/words";
import styles from "./LoginPage.module.css";
import { readCode, safeNext } from "./next";

const route = getRouteApi("/login");

export function LoginPage() {
  const [token, setToken] = useState("");
  const [code] = useState(() => readCode(location.hash));
  const [error, setError] = useState<string | undefined>();
  const [isBusy, setBusy] = useState(code !== null);
  const enter = useEnter();

  const attempt = async (given: { token: string } | { code: string }) => {
    setBusy(true);
    try {
      await enter(given);
    } catch (failure) {
      const isUsed = "code" in given && failure instanceof ApiError && failure.status !== 0;
      setError(isUsed ? words.session.codeFailed : (failure as Error).message);
      setBusy(false);
    }
  };
  useCodeOnce(code, (found) => void attempt({ code: found }));

  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (token.trim()) void attempt({ token: token.trim() });
  };
  return (
    <main className={styles.page}>
      <form className={styles.card} onSubmit={onSubmit}>
        <h1 className={styles.title}>{words.session.title}</h1>
        {isBusy && code && <p role="status">{words.session.checking}</p>}
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
        <p className={styles.other}>{words.session.viaCommand}</p>
        <CodeBlock text={`proctor dashboard ${location.origin}`} />
      </form>
    </main>
  );
}

function useEnter() {
  const client = useQueryClient();
  const router = useRouter();
  const { next } = route.useSearch();
  return async (given: { token: string } | { code: string }) => {
    await logIn(given);
    client.clear();
    router.history.replace(safeNext(next));
  };
}

const used = new Set<string>();

/** A code works once: not again when the page is rendered again, and it does not stay in the address. */
function useCodeOnce(code: string | null, run: (code: string) => void): void {
  useEffect(() => {
    if (code === null || used.has(code)) return;
    used.add(code);
    history.replaceState(history.state, "", location.pathname + location.search);
    run(code);
  });
}
