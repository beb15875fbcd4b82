/** The users and teams with a role, for owners to give, change and take. */
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useChange } from "#/api/change";
import { environmentKey } from "#/api/environmentKeys";
import { collaboratorsQuery, grantRole, revokeRole, slugOf } from "#/api/environments";
import type { Collaborator } from "#/api/types";
import { Button } from "#/design/Button";
import { Section } from "#/design/Section";
import { Select } from "#/design/Select";
import { TextField } from "#/design/TextField";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { Loaded } from "#/parts/Loaded";
import { Problem } from "#/parts/Problem";
import { RefusableButton } from "#/parts/RefusableButton";
import { useEnvironment } from "../context";
import styles from "../environment.module.css";
import { explainRole } from "../rights";
import { text } from "../words";

const words = text.access;
const ROLES = ["read", "write", "owner"] as const;
const OPTIONS = ROLES.map((role) => ({ value: role, label: role }));

export function Collaborators() {
  const shown = useEnvironment();
  const reason = explainRole(shown, "owner");
  return (
    <Section title={words.people} note={words.implied(shown.slug.owner)} flush>
      {reason === null ? (
        <People />
      ) : (
        <p className={styles.note}>
          {words.peopleHidden(shown.slug.owner)} {reason}
        </p>
      )}
      <AddForm reason={reason} />
    </Section>
  );
}

function People() {
  const { environment, slug } = useEnvironment();
  const query = useQuery(collaboratorsQuery(slug));
  const [leaving, setLeaving] = useState<string | null>(null);
  const change = useChange({
    send: (name: string) => revokeRole(slug, name),
    refresh: [environmentKey(slugOf(slug))],
    onDone: () => setLeaving(null),
  });
  return (
    <>
      <Loaded query={query} lines={2}>
        {({ items }) =>
          items.length === 0 ? (
            <p className={styles.note}>{words.nobody(slug.owner)}</p>
          ) : (
            <table className={styles.table}>
              <thead>
                <tr>
                  <th scope="col">{words.name}</th>
                  <th scope="col">{words.role}</th>
                  <td />
                </tr>
              </thead>
              <tbody>
                {items.map((each) => (
                  <PersonRow key={each.name} person={each} onRemove={() => setLeaving(each.name)} />
                ))}
              </tbody>
            </table>
          )
        }
      </Loaded>
      <ConfirmDialog
        open={leaving !== null}
        onClose={() => {
          change.reset();
          setLeaving(null);
        }}
        title={words.removeTitle(leaving ?? "")}
        action={words.remove}
        onConfirm={() => leaving !== null && change.submit(leaving)}
        isBusy={change.isBusy}
        error={change.error}
      >
        <p>{words.removeText(leaving ?? "", environment.visibility === "private")}</p>
      </ConfirmDialog>
    </>
  );
}

function PersonRow({ person, onRemove }: { person: Collaborator; onRemove: () => void }) {
  const { slug } = useEnvironment();
  const change = useChange({
    send: (role: Collaborator["role"]) => grantRole(slug, { name: person.name, role }),
    refresh: [environmentKey(slugOf(slug))],
  });
  return (
    <tr>
      <th scope="row">{person.name}</th>
      <td>
        <Select
          label={words.roleOf(person.name)}
          hideLabel
          className={styles.roleSelect ?? ""}
          value={person.role}
          options={OPTIONS}
          onChange={change.submit}
          disabled={change.isBusy}
        />
        <Problem error={change.error} />
      </td>
      <td>
        <Button look="quiet" small aria-label={`${words.remove} ${person.name}`} onClick={onRemove}>
          {words.remove}
        </Button>
      </td>
    </tr>
  );
}

function AddForm({ reason }: { reason: string | null }) {
  const { slug } = useEnvironment();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Collaborator["role"]>("read");
  const change = useChange({
    send: (given: Collaborator) => grantRole(slug, given),
    refresh: [environmentKey(slugOf(slug))],
    onDone: () => setName(""),
  });
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    if (reason === null && name.trim()) change.submit({ name: name.trim(), role });
  };
  return (
    <>
      <form className={styles.form} onSubmit={onSubmit}>
        <TextField
          label={words.name}
          value={name}
          autoComplete="off"
          spellCheck={false}
          disabled={reason !== null}
          error={change.problems.name}
          onChange={(event) => setName(event.target.value)}
        />
        <Select
          label={words.role}
          value={role}
          options={OPTIONS}
          onChange={setRole}
          disabled={reason !== null}
          error={change.problems.role}
        />
        <RefusableButton type="submit" reason={reason} disabled={change.isBusy || name.trim() === ""}>
          {words.add}
        </RefusableButton>
      </form>
      <Problem error={change.error} fields={["name", "role"]} />
    </>
  );
}
