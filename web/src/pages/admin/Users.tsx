/** The users of the server: add, invite, suspend, make an admin. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { USER_KEY, usersQuery } from "#/api/admin";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import type { User } from "#/api/types";
import { Badge, Mark } from "#/design/Badge";
import { Button } from "#/design/Button";
import { Section } from "#/design/Section";
import { Switch } from "#/design/Switch";
import { TextField } from "#/design/TextField";
import { DataTable } from "#/parts/DataTable";
import { When } from "#/parts/Figures";
import { FormDialog } from "#/parts/FormDialog";
import { Loaded } from "#/parts/Loaded";
import styles from "../settings/forms.module.css";
import { useAccount } from "../settings/useAccount";
import { LoginLink } from "./LoginLink";
import { UserActions } from "./UserActions";
import { text } from "./words";

const words = text.users;

export function Users() {
  const users = useQuery(usersQuery);
  const { name } = useAccount();
  const [isNew, setNew] = useState(false);
  const [invited, setInvited] = useState<string | null>(null);
  const admins = users.data?.filter((user) => user.is_admin && !user.disabled).length ?? 0;
  return (
    <Section
      title={words.title}
      flush
      actions={
        <Button look="primary" icon="plus" onClick={() => setNew(true)}>
          {words.add}
        </Button>
      }
    >
      <Loaded query={users}>
        {(found) => (
          <DataTable
            label={words.title}
            columns={[
              {
                title: words.name,
                cell: (user) => (
                  <>
                    <span className={styles.name}>{user.name}</span>{" "}
                    {user.is_admin && <Badge tone="violet">{words.admin}</Badge>}{" "}
                    {user.name === name && <span className={styles.faint}>({words.you})</span>}
                  </>
                ),
              },
              { title: words.state, cell: (user) => <State user={user} /> },
              {
                title: words.lastSeen,
                cell: (user) => (user.last_seen_at === null ? words.never : <When at={user.last_seen_at} />),
              },
              { title: words.since, cell: (user) => <When at={user.created_at} /> },
              {
                title: text.actions,
                isActions: true,
                cell: (user) => (
                  <UserActions
                    user={user}
                    isLastAdmin={user.is_admin && !user.disabled && admins === 1}
                    onInvite={() => setInvited(user.name)}
                  />
                ),
              },
            ]}
            rows={found}
            keyOf={(user) => user.id}
            empty={null}
          />
        )}
      </Loaded>
      {isNew && (
        <NewUserDialog
          onClose={() => setNew(false)}
          onAdded={(user) => {
            setNew(false);
            setInvited(user);
          }}
        />
      )}
      {invited !== null && <LoginLink user={invited} onClose={() => setInvited(null)} />}
    </Section>
  );
}

const State = ({ user }: { user: User }) =>
  user.disabled ? (
    <Mark tone="bad" icon="ban">
      {words.suspended}
    </Mark>
  ) : (
    <Mark tone="good" icon="check">
      {words.active}
    </Mark>
  );

/** Who was added is invited by a link; the token that the API returns as well is not shown. */
function NewUserDialog({ onClose, onAdded }: { onClose: () => void; onAdded: (name: string) => void }) {
  const [name, setName] = useState("");
  const [isAdmin, setAdmin] = useState(false);
  const add = useChange<{ name: string; is_admin: boolean }>({
    send: (body, key) =>
      read(api.POST("/api/v1/users", { body, params: { header: { "Idempotency-Key": key } } })),
    refresh: [USER_KEY],
    onDone: (_, given) => onAdded(given.name),
  });
  return (
    <FormDialog
      title={words.add}
      onClose={onClose}
      action={words.addAction}
      onSubmit={() => add.submit({ name: name.trim(), is_admin: isAdmin })}
      isBusy={add.isBusy}
      error={add.error}
      fields={["name"]}
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
      <Switch label={words.isAdmin} hint={words.isAdminHint} checked={isAdmin} onChange={setAdmin} />
    </FormDialog>
  );
}
