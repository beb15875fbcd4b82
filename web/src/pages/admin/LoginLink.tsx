/** A one-time login link for a user, made when this opens, and shown once. */
import { useEffect, useRef } from "react";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import { Dialog } from "#/design/Dialog";
import { Skeleton } from "#/design/Skeleton";
import { Problem } from "#/parts/Problem";
import { ShownOnce } from "#/parts/ShownOnce";
import { text } from "./words";

const words = text.users;

export function LoginLink({ user, onClose }: { user: string; onClose: () => void }) {
  const create = useChange<string, { url: string }>({
    send: (name, key) =>
      read(
        api.POST("/api/v1/users/{name}/login-links", {
          params: { path: { name }, header: { "Idempotency-Key": key } },
        }),
      ),
  });
  const wasAsked = useRef(false);
  useEffect(() => {
    if (wasAsked.current) return;
    wasAsked.current = true;
    create.submit(user);
  });
  if (create.answer)
    return (
      <ShownOnce
        title={words.linkShown(user)}
        value={create.answer.url}
        copy={words.linkCopy}
        done={text.done}
        onClose={onClose}
      >
        {words.linkText(user)}
      </ShownOnce>
    );
  return (
    <Dialog open onClose={onClose} title={words.linkShown(user)}>
      {create.error ? <Problem error={create.error} /> : <Skeleton lines={2} />}
    </Dialog>
  );
}
