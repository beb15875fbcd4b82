/** Which environment to run; or the wizard of the environment of a run that is to be repeated. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { runQuery } from "#/api/runs";
import { environmentListQuery } from "#/api/startRun";
import { LoadError } from "#/app/PageError";
import { EmptyState } from "#/design/EmptyState";
import { PageBody, PageHeader, Section } from "#/design/Section";
import { Skeleton } from "#/design/Skeleton";
import { TextField } from "#/design/TextField";
import { Loaded } from "#/parts/Loaded";
import { PageLink } from "#/parts/PageLink";
import { words } from "#/words";
import { wizardAddress } from "./link";
import { useSettled } from "./useSettled";
import styles from "./Wizard.module.css";
import { text } from "./words";

const route = getRouteApi("/run");
const say = text.choose;
const PAUSE_MS = 200;

export function ChooseEnvironmentPage() {
  const { from } = route.useSearch();
  useEffect(() => {
    document.title = `${say.title} · ${words.product}`;
  }, []);
  return from ? <OfRun id={from} /> : <EnvironmentList />;
}

function OfRun({ id }: { id: string }) {
  const run = useQuery(runQuery(id));
  const navigate = useNavigate();
  const environment = run.data?.environment;
  useEffect(() => {
    if (environment) void navigate({ href: wizardAddress({ environment, from: id }), replace: true });
  }, [environment, id, navigate]);
  if (run.error && !run.data) return <LoadError error={run.error} onRetry={() => void run.refetch()} />;
  return <Skeleton lines={8} />;
}

function EnvironmentList() {
  const { q = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const [typed, setTyped] = useState(q);
  const wanted = useSettled(typed, PAUSE_MS);
  useEffect(() => {
    if (wanted !== q) void navigate({ search: wanted ? { q: wanted } : {}, replace: true });
  }, [wanted, q, navigate]);
  const list = useQuery(environmentListQuery(wanted.trim()));
  return (
    <>
      <PageHeader title={say.title} />
      <PageBody>
        <TextField
          label={say.search}
          hideLabel
          icon="search"
          type="search"
          placeholder={say.search}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        <Section title={say.list}>
          <Loaded query={list}>
            {({ items }) =>
              items.length > 0 ? (
                <ul className={styles.choices}>
                  {items.map((each) => (
                    <li key={each.id} className={styles.choice}>
                      <PageLink href={wizardAddress({ environment: `${each.owner}/${each.name}` })}>
                        {each.owner}/{each.name}
                      </PageLink>
                      <span className={styles.soft}>{each.latest?.version ?? say.noVersion}</span>
                      <span className={styles.soft}>{each.description}</span>
                    </li>
                  ))}
                </ul>
              ) : (
                <EmptyState
                  title={wanted ? say.noneMatch : say.none}
                  commands={wanted ? [] : ["proctor env push"]}
                >
                  {!wanted && <p>{say.noneHint}</p>}
                </EmptyState>
              )
            }
          </Loaded>
        </Section>
      </PageBody>
    </>
  );
}
