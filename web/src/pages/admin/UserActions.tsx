/** What an admin may do with a user; what would leave the server without an admin says so. */
import { useState } from "react";
import { USER_KEY } from "#/api/admin";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import type { User } from "#/api/types";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { RefusableButton } from "#/parts/RefusableButton";
import { ShownOnce } from "#/parts/ShownOnce";
import { NewTokenDialog } from "../settings/NewTokenDialog";
import { text as settingsText } from "../settings/words";
import { text } from "./words";

const words = text.users;

type Asked = "suspend" | "admin" | "token" | null;
type UserChange = { disabled?: boolean; is_admin?: boolean };
type Props = { user: User; isLastAdmin: boolean; onInvite: () => void };

export function UserActions({ user, isLastAdmin, onInvite }: Props) {
  const [asked, setAsked] = useState<Asked>(null);
  const refusal = isLastAdmin ? words.lastAdmin : null;
  const suspended = user.disabled ? words.isSuspended : null;
  const change = useChange<UserChange>({
    send: (query) =>
      read(api.PATCH("/api/v1/users/{name}", { params: { path: { name: user.name }, query } })),
    refresh: [USER_KEY, ["session"]],
    onDone: () => setAsked(null),
  });
  const close = () => {
    change.reset();
    setAsked(null);
  };
  const label = (deed: string) => `${deed}: ${user.name}`;
  const suspendWord = user.disabled ? words.reactivate : words.suspend;
  const adminWord = user.is_admin ? words.removeAdmin : words.makeAdmin;
  return (
    <>
      <RefusableButton small icon="link" reason={suspended} aria-label={label(words.link)} onClick={onInvite}>
        {words.link}
      </RefusableButton>
      <RefusableButton
        small
        icon="key"
        reason={suspended}
        aria-label={label(words.token)}
        onClick={() => setAsked("token")}
      >
        {words.token}
      </RefusableButton>
      <RefusableButton small reason={refusal} aria-label={label(adminWord)} onClick={() => setAsked("admin")}>
        {adminWord}
      </RefusableButton>
      <RefusableButton
        small
        reason={refusal}
        aria-label={label(suspendWord)}
        onClick={() => (user.disabled ? change.submit({ disabled: false }) : setAsked("suspend"))}
      >
        {suspendWord}
      </RefusableButton>
      <ConfirmDialog
        open={asked === "suspend"}
        onClose={close}
        title={words.suspendTitle(user.name)}
        action={words.suspend}
        onConfirm={() => change.submit({ disabled: true })}
        isBusy={change.isBusy}
        error={change.error}
      >
        <p>{words.suspendText}</p>
      </ConfirmDialog>
      <ConfirmDialog
        open={asked === "admin"}
        onClose={close}
        title={user.is_admin ? words.removeAdminTitle(user.name) : words.adminTitle(user.name)}
        action={adminWord}
        look={user.is_admin ? "danger" : "primary"}
        onConfirm={() => change.submit({ is_admin: !user.is_admin })}
        isBusy={change.isBusy}
        error={change.error}
      >
        <p>{user.is_admin ? words.removeAdminText : words.adminText}</p>
      </ConfirmDialog>
      {asked === "token" && <TokenFor user={user} onClose={close} />}
    </>
  );
}

/** Asks for a new token of a user, and shows it once. */
function TokenFor({ user, onClose }: { user: User; onClose: () => void }) {
  const [secret, setSecret] = useState<string | null>(null);
  if (secret !== null)
    return (
      <ShownOnce
        title={words.tokenShown(user.name)}
        value={secret}
        copy={words.tokenCopy}
        done={text.done}
        onClose={onClose}
      >
        {words.tokenText(user.name)}
      </ShownOnce>
    );
  return (
    <NewTokenDialog
      title={words.tokenTitle(user.name)}
      scopes={Object.keys(settingsText.scopes).filter((scope) => scope !== "admin" || user.is_admin)}
      send={(body, key) =>
        read(
          api.POST("/api/v1/users/{name}/tokens", {
            params: { path: { name: user.name }, header: { "Idempotency-Key": key } },
            body,
          }),
        )
      }
      onClose={onClose}
      onCreated={(made) => setSecret(made.secret)}
    />
  );
}
