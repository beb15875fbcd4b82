/** Secrets and variables: values go in and never come out; those of one environment stand below. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { SECRET_KEY, secretsQuery } from "#/api/account";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import type { Secret } from "#/api/types";
import { Section } from "#/design/Section";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { DataTable } from "#/parts/DataTable";
import { When } from "#/parts/Figures";
import { Loaded } from "#/parts/Loaded";
import { RefusableButton } from "#/parts/RefusableButton";
import { EnvironmentValues } from "./EnvironmentValues";
import styles from "./forms.module.css";
import { useAccount } from "./useAccount";
import { NewValueDialog, ReplaceDialog } from "./ValueDialogs";
import { text } from "./words";

const words = text.secrets;

type Asked = "new" | { replace: Secret } | { delete: Secret } | null;

export function Secrets() {
  const { reason, teams } = useAccount();
  const lacks = reason("secrets:write", words.lacks);
  const secrets = useQuery(secretsQuery);
  const [asked, setAsked] = useState<Asked>(null);
  const close = () => setAsked(null);
  return (
    <>
      <Section
        title={words.title}
        note={words.note}
        flush
        actions={
          <RefusableButton look="primary" icon="plus" reason={lacks} onClick={() => setAsked("new")}>
            {words.create}
          </RefusableButton>
        }
      >
        <Loaded query={secrets}>
          {(found) => (
            <SecretTable
              secrets={found}
              lacks={lacks}
              onReplace={(secret) => setAsked({ replace: secret })}
              onDelete={(secret) => setAsked({ delete: secret })}
            />
          )}
        </Loaded>
      </Section>
      <EnvironmentValues lacks={lacks} />
      {asked === "new" && (
        <NewValueDialog
          title={words.create}
          valueHint={words.valueHint}
          isSecret
          teams={teams.filter((team) => team.role === "admin").map((team) => team.team)}
          send={(body, key) =>
            read(api.POST("/api/v1/secrets", { body, params: { header: { "Idempotency-Key": key } } }))
          }
          onClose={close}
        />
      )}
      {asked !== null && typeof asked === "object" && "replace" in asked && (
        <ReplaceDialog
          name={asked.replace.name}
          isSecret
          send={(value) =>
            read(
              api.PATCH("/api/v1/secrets/{secret_id}", {
                params: { path: { secret_id: asked.replace.id } },
                body: { value },
              }),
            )
          }
          onClose={close}
        />
      )}
      {asked !== null && typeof asked === "object" && "delete" in asked && (
        <DeleteDialog
          name={asked.delete.name}
          send={() =>
            read(
              api.DELETE("/api/v1/secrets/{secret_id}", { params: { path: { secret_id: asked.delete.id } } }),
            )
          }
          onClose={close}
        />
      )}
    </>
  );
}

type TableProps = {
  secrets: readonly Secret[];
  lacks: string | null;
  onReplace: (secret: Secret) => void;
  onDelete: (secret: Secret) => void;
};

function SecretTable({ secrets, lacks, onReplace, onDelete }: TableProps) {
  const { name } = useAccount();
  return (
    <DataTable
      label={words.title}
      columns={[
        {
          title: words.name,
          cell: (secret) => (
            <>
              <code className={styles.name}>{secret.name}</code>{" "}
              <span className={styles.faint}>{secret.description}</span>
            </>
          ),
        },
        { title: words.owner, cell: (secret) => (secret.owner === name ? words.yourself : secret.owner) },
        {
          title: words.linked,
          cell: (secret) =>
            secret.linked_to.length === 0 ? (
              <span className={styles.faint}>{words.notLinked}</span>
            ) : (
              secret.linked_to.join(", ")
            ),
        },
        { title: words.changed, cell: (secret) => <When at={secret.updated_at} /> },
        {
          title: text.actions,
          isActions: true,
          cell: (secret) => (
            <>
              <RefusableButton
                small
                reason={lacks}
                aria-label={words.replaceOf(secret.name)}
                onClick={() => onReplace(secret)}
              >
                {words.replace}
              </RefusableButton>
              <RefusableButton
                small
                reason={lacks}
                aria-label={words.deleteOf(secret.name)}
                onClick={() => onDelete(secret)}
              >
                {words.delete}
              </RefusableButton>
            </>
          ),
        },
      ]}
      rows={secrets}
      keyOf={(secret) => secret.id}
      empty={words.none}
    />
  );
}

type DeleteProps = {
  name: string;
  title?: string;
  action?: string;
  lost?: string;
  send: () => Promise<unknown>;
  onClose: () => void;
};

export function DeleteDialog({ name, title, action, lost, send, onClose }: DeleteProps) {
  const remove = useChange({ send, refresh: [SECRET_KEY], onDone: onClose });
  return (
    <ConfirmDialog
      open
      onClose={onClose}
      title={title ?? words.deleteTitle(name)}
      action={action ?? words.delete}
      onConfirm={() => remove.submit()}
      isBusy={remove.isBusy}
      error={remove.error}
    >
      <p>{lost ?? words.deleteText}</p>
    </ConfirmDialog>
  );
}
