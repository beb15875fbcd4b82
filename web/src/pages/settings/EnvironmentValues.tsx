/** What the runs of one environment find in their variables: its secrets, those linked to it, its variables. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { environmentValuesQuery, ownEnvironmentsQuery, SECRET_KEY, secretsQuery } from "#/api/account";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import type { Secret } from "#/api/types";
import { Section } from "#/design/Section";
import { Select } from "#/design/Select";
import { DataTable } from "#/parts/DataTable";
import { When } from "#/parts/Figures";
import { FormDialog } from "#/parts/FormDialog";
import { Loaded } from "#/parts/Loaded";
import { RefusableButton } from "#/parts/RefusableButton";
import styles from "./forms.module.css";
import { DeleteDialog } from "./Secrets";
import { NewValueDialog, ReplaceDialog } from "./ValueDialogs";
import { text } from "./words";

const words = text.secrets;
const route = getRouteApi("/settings/secrets");

type Place = { owner: string; name: string };

export function EnvironmentValues({ lacks }: { lacks: string | null }) {
  const environments = useQuery(ownEnvironmentsQuery);
  const { environment } = route.useSearch();
  const navigate = useNavigate();
  const slugs = environments.data?.map((each) => `${each.owner}/${each.name}`) ?? [];
  const chosen = environment ?? slugs[0];
  const [owner, name] = (chosen ?? "").split("/");
  return (
    <Section title={words.environment} note={words.environmentNote} flush>
      <Loaded query={environments} lines={2}>
        {() =>
          !chosen || !owner || !name ? (
            <p className={styles.note}>{words.noEnvironments}</p>
          ) : (
            <>
              <div className={styles.bar}>
                <Select
                  label={words.choose}
                  value={chosen}
                  options={[...new Set([chosen, ...slugs])].map((slug) => ({ value: slug, label: slug }))}
                  onChange={(slug) =>
                    void navigate({ to: "/settings/secrets", search: { environment: slug }, replace: true })
                  }
                />
              </div>
              <Values key={chosen} place={{ owner, name }} lacks={lacks} />
            </>
          )
        }
      </Loaded>
    </Section>
  );
}

type Asked = "secret" | "variable" | "link" | { replace: Secret } | { remove: Secret } | null;

function Values({ place, lacks }: { place: Place; lacks: string | null }) {
  const values = useQuery(environmentValuesQuery(place.owner, place.name));
  const [asked, setAsked] = useState<Asked>(null);
  const close = () => setAsked(null);
  return (
    <>
      <div className={styles.bar}>
        <RefusableButton small icon="plus" reason={lacks} onClick={() => setAsked("secret")}>
          {words.addSecret}
        </RefusableButton>
        <RefusableButton small icon="plus" reason={lacks} onClick={() => setAsked("variable")}>
          {words.addVariable}
        </RefusableButton>
        <RefusableButton small icon="link" reason={lacks} onClick={() => setAsked("link")}>
          {words.link}
        </RefusableButton>
      </div>
      <Loaded query={values} lines={2}>
        {(found) => (
          <ValueTable
            values={found}
            lacks={lacks}
            onReplace={(value) => setAsked({ replace: value })}
            onRemove={(value) => setAsked({ remove: value })}
          />
        )}
      </Loaded>
      {asked === "link" && <LinkDialog place={place} known={values.data ?? []} onClose={close} />}
      {(asked === "secret" || asked === "variable") && (
        <NewValueDialog
          title={asked === "secret" ? words.addSecret : words.addVariable}
          valueHint={asked === "secret" ? words.valueHint : words.variableHint}
          isSecret={asked === "secret"}
          send={(body, key) => addValue(place, asked, body, key)}
          onClose={close}
        />
      )}
      {asked !== null && typeof asked === "object" && "replace" in asked && (
        <ReplaceDialog
          name={asked.replace.name}
          isSecret={asked.replace.kind !== "variable"}
          send={(value) => replaceValue(place, asked.replace, value)}
          onClose={close}
        />
      )}
      {asked !== null && typeof asked === "object" && "remove" in asked && (
        <RemoveDialog place={place} value={asked.remove} onClose={close} />
      )}
    </>
  );
}

type TableProps = {
  values: readonly Secret[];
  lacks: string | null;
  onReplace: (value: Secret) => void;
  onRemove: (value: Secret) => void;
};

function ValueTable({ values, lacks, onReplace, onRemove }: TableProps) {
  return (
    <DataTable
      label={words.environment}
      columns={[
        { title: words.name, cell: (value) => <code className={styles.name}>{value.name}</code> },
        {
          title: words.kind,
          cell: (value) => (
            <>
              {words.kinds[value.kind]}{" "}
              {!value.is_active && <span className={styles.faint}>{words.inactive}</span>}
            </>
          ),
        },
        {
          title: words.value,
          cell: (value) =>
            value.kind === "variable" ? (
              <code>{value.value}</code>
            ) : (
              <span className={styles.faint}>{words.hidden}</span>
            ),
        },
        { title: words.changed, cell: (value) => <When at={value.updated_at} /> },
        {
          title: text.actions,
          isActions: true,
          cell: (value) => (
            <>
              {value.kind !== "linked" && (
                <RefusableButton
                  small
                  reason={lacks}
                  aria-label={words.replaceOf(value.name)}
                  onClick={() => onReplace(value)}
                >
                  {words.replace}
                </RefusableButton>
              )}
              <RefusableButton
                small
                reason={lacks}
                aria-label={value.kind === "linked" ? words.unlinkOf(value.name) : words.deleteOf(value.name)}
                onClick={() => onRemove(value)}
              >
                {value.kind === "linked" ? words.unlink : words.delete}
              </RefusableButton>
            </>
          ),
        },
      ]}
      rows={values}
      keyOf={(value) => value.id}
      empty={words.nothing}
    />
  );
}

function LinkDialog({
  place,
  known,
  onClose,
}: {
  place: Place;
  known: readonly Secret[];
  onClose: () => void;
}) {
  const secrets = useQuery(secretsQuery);
  const free = (secrets.data ?? []).filter((secret) => known.every((each) => each.id !== secret.id));
  const [chosen, setChosen] = useState("");
  const id = chosen || free[0]?.id || "";
  const link = useChange<string>({
    send: (secret_id) =>
      read(
        api.PUT("/api/v1/environments/{owner}/{name}/secrets/links/{secret_id}", {
          params: { path: { ...place, secret_id } },
        }),
      ),
    refresh: [SECRET_KEY],
    onDone: onClose,
  });
  return (
    <FormDialog
      title={words.link}
      onClose={onClose}
      action={words.linkAction}
      onSubmit={() => id && link.submit(id)}
      isBusy={link.isBusy || id === ""}
      error={link.error}
    >
      {free.length === 0 ? (
        <p>{words.linkNone}</p>
      ) : (
        <Select
          label={words.linkWhich}
          value={id}
          options={free.map((secret) => ({ value: secret.id, label: `${secret.name} (${secret.owner})` }))}
          onChange={setChosen}
        />
      )}
    </FormDialog>
  );
}

function RemoveDialog({ place, value, onClose }: { place: Place; value: Secret; onClose: () => void }) {
  if (value.kind !== "linked")
    return <DeleteDialog name={value.name} send={() => removeValue(place, value)} onClose={onClose} />;
  return (
    <DeleteDialog
      name={value.name}
      title={words.unlinkTitle(value.name)}
      action={words.unlink}
      lost={words.unlinkText}
      send={() => removeValue(place, value)}
      onClose={onClose}
    />
  );
}

function addValue(
  place: Place,
  kind: "secret" | "variable",
  body: { name: string; value: string },
  key: string,
): Promise<unknown> {
  const params = { path: place, header: { "Idempotency-Key": key } };
  return kind === "secret"
    ? read(api.POST("/api/v1/environments/{owner}/{name}/secrets", { params, body }))
    : read(api.POST("/api/v1/environments/{owner}/{name}/variables", { params, body }));
}

function replaceValue(place: Place, changed: Secret, value: string): Promise<unknown> {
  return changed.kind === "variable"
    ? read(
        api.PATCH("/api/v1/environments/{owner}/{name}/variables/{variable_id}", {
          params: { path: { ...place, variable_id: changed.id } },
          body: { value },
        }),
      )
    : read(
        api.PATCH("/api/v1/environments/{owner}/{name}/secrets/{secret_id}", {
          params: { path: { ...place, secret_id: changed.id } },
          body: { value },
        }),
      );
}

function removeValue(place: Place, value: Secret): Promise<unknown> {
  if (value.kind === "variable")
    return read(
      api.DELETE("/api/v1/environments/{owner}/{name}/variables/{variable_id}", {
        params: { path: { ...place, variable_id: value.id } },
      }),
    );
  const params = { path: { ...place, secret_id: value.id } };
  return value.kind === "linked"
    ? read(api.DELETE("/api/v1/environments/{owner}/{name}/secrets/links/{secret_id}", { params }))
    : read(api.DELETE("/api/v1/environments/{owner}/{name}/secrets/{secret_id}", { params }));
}
