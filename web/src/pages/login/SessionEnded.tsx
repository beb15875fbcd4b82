/** Stands above a page whose session ended: whoever logs in again goes on where they were. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { logIn, type SessionInfo, sessionQuery } from "#/api/session";
import { endedSession, resumeSession } from "#/app/session";
import { Button } from "#/design/Button";
import { Dialog } from "#/design/Dialog";
import styles from "./LoginPage.module.css";
import { TokenForm } from "./TokenForm";
import { text } from "./words";

export function SessionEnded({ user }: { user: string }) {
  const client = useQueryClient();
  const [error, setError] = useState<string | undefined>();
  const [isBusy, setBusy] = useState(false);
  const attempt = async (ask: () => Promise<SessionInfo | null>) => {
    setBusy(true);
    setError(undefined);
    try {
      const session = await ask();
      if (session?.user) await resumeSession(client, session.user.name);
      else setError(text.notYet);
    } catch (failure) {
      setError((failure as Error).message);
    }
    setBusy(false);
  };
  return (
    <Dialog open onClose={() => endedSession.set(() => null)} title={text.title}>
      <div className={styles.form}>
        <p>{text.kept(user)}</p>
        <TokenForm onSubmit={(token) => void attempt(() => logIn({ token }))} isBusy={isBusy} error={error} />
        <Button
          look="quiet"
          disabled={isBusy}
          onClick={() => void attempt(() => client.fetchQuery({ ...sessionQuery, staleTime: 0 }))}
        >
          {text.elsewhere}
        </Button>
      </div>
    </Dialog>
  );
}
