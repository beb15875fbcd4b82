/** Log in with a token, or with the one-time code of a link, which stands in the fragment. */
import { useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { ApiError } from "#/api/client";
import { logIn } from "#/api/session";
import { restartFeed } from "#/app/feed";
import { words } from "#/words";
import { LoginHelp } from "./LoginHelp";
import styles from "./LoginPage.module.css";
import { readCode, safeNext } from "./next";
import { TokenForm } from "./TokenForm";
import { text } from "./words";

const route = getRouteApi("/login");

export function LoginPage() {
  const [code] = useState(() => readCode(location.hash));
  const [error, setError] = useState<string | undefined>();
  const [isBusy, setBusy] = useState(code !== null);
  const { ended } = route.useSearch();
  const enter = useEnter();

  const attempt = async (given: { token: string } | { code: string }) => {
    setBusy(true);
    try {
      await enter(given);
    } catch (failure) {
      const isAnswer = failure instanceof ApiError && failure.status !== 0;
      const refusal = "code" in given ? text.codeFailed(location.origin) : (failure as Error).message;
      setError(isAnswer ? refusal : text.unreachable);
      setBusy(false);
    }
  };
  useCodeOnce(code, (found) => void attempt({ code: found }));

  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <h1 className={styles.title}>{words.session.title}</h1>
        {ended && !error && (
          <p role="status" className={styles.notice}>
            {text.ended}
          </p>
        )}
        {isBusy && code && <p role="status">{words.session.checking}</p>}
        <TokenForm onSubmit={(token) => void attempt({ token })} isBusy={isBusy} error={error} />
        <LoginHelp />
      </div>
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
    restartFeed();
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
