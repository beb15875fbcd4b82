/** Which secrets the run will have and from where; and secrets for this run alone. */
import type { RunSecret } from "#/api/types";
import { Badge } from "#/design/Badge";
import { Button, IconButton } from "#/design/Button";
import { Section } from "#/design/Section";
import { TextField } from "#/design/TextField";
import type { Wizard } from "./useWizard";
import styles from "./Wizard.module.css";
import { text } from "./words";

const say = text.secrets;

export function SecretsSection({ wizard }: { wizard: Wizard }) {
  const secrets = wizard.server.check?.secrets ?? [];
  const add = (name = "") => {
    const id = 1 + Math.max(0, ...wizard.secrets.map((each) => each.id));
    wizard.setSecrets([...wizard.secrets, { id, name, value: "" }]);
  };
  return (
    <Section title={say.title} note={say.note}>
      <div className={styles.stack}>
        {secrets.length > 0 ? <SecretTable secrets={secrets} onAdd={add} /> : <p>{say.none}</p>}
        <h3>{say.own}</h3>
        <p className={styles.soft}>{say.ownNote}</p>
        {wizard.secrets.map((secret) => (
          <OwnSecretLine key={secret.id} wizard={wizard} id={secret.id} />
        ))}
        <div>
          <Button icon="plus" onClick={() => add()}>
            {say.add}
          </Button>
        </div>
      </div>
    </Section>
  );
}

function SecretTable({ secrets, onAdd }: { secrets: readonly RunSecret[]; onAdd: (name: string) => void }) {
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">{say.name}</th>
            <th scope="col">{say.origin}</th>
            <th scope="col">{say.reaches}</th>
          </tr>
        </thead>
        <tbody>
          {secrets.map((secret) => (
            <tr key={secret.name}>
              <td>
                <code>{secret.name}</code> {secret.declared && <Badge>{say.declared}</Badge>}
              </td>
              <td>{nameOrigin(secret)}</td>
              <td>
                {secret.reaches ? (
                  <Badge tone="good" icon="check">
                    {say.yes}
                  </Badge>
                ) : (
                  <div className={styles.stack}>
                    <span>
                      <Badge tone={secret.declared ? "bad" : "neutral"} icon="ban">
                        {say.no}
                      </Badge>{" "}
                      {secret.why}
                    </span>
                    <span>
                      <Button small onClick={() => onAdd(secret.name)}>
                        {say.needed(secret.name)}
                      </Button>
                    </span>
                  </div>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export const nameOrigin = (secret: RunSecret): string =>
  secret.origin === "linked"
    ? say.linked(secret.owner)
    : secret.origin === null
      ? say.noOrigin
      : (say.origins[secret.origin] ?? secret.origin);

function OwnSecretLine({ wizard, id }: { wizard: Wizard; id: number }) {
  const secret = wizard.secrets.find((each) => each.id === id);
  if (!secret) return null;
  const set = (change: { name?: string; value?: string }) =>
    wizard.setSecrets(wizard.secrets.map((each) => (each.id === id ? { ...each, ...change } : each)));
  return (
    <div className={styles.secret}>
      <TextField
        label={say.ownName}
        value={secret.name}
        autoComplete="off"
        spellCheck={false}
        error={wizard.server.problems[`custom_secrets.${secret.name.trim()}`]}
        onChange={(event) => set({ name: event.target.value })}
      />
      <TextField
        label={say.ownValue(secret.name)}
        type="password"
        value={secret.value}
        autoComplete="new-password"
        onChange={(event) => set({ value: event.target.value })}
      />
      <IconButton
        label={say.remove(secret.name)}
        icon="close"
        className={styles.remove}
        onClick={() => wizard.setSecrets(wizard.secrets.filter((each) => each.id !== id))}
      />
    </div>
  );
}
