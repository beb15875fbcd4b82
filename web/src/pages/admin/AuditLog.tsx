/** Who changed what: filters in the address, the newest first, older ones on demand. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useEffect, useState } from "react";
import { auditQuery, usersQuery } from "#/api/admin";
import type { AuditEntry, AuditQuery } from "#/api/types";
import { LoadError } from "#/app/PageError";
import { Button } from "#/design/Button";
import { Section } from "#/design/Section";
import { Select } from "#/design/Select";
import { Skeleton } from "#/design/Skeleton";
import { TextField } from "#/design/TextField";
import { DataTable } from "#/parts/DataTable";
import { When } from "#/parts/Figures";
import styles from "../settings/forms.module.css";
import { text } from "./words";

const words = text.audit;
const route = getRouteApi("/admin/audit");
const DAY = 86_400;
const PERIODS = ["1", "7", "30"] as const;

type Search = ReturnType<typeof route.useSearch>;

export function AuditLog() {
  const search = route.useSearch();
  const [today] = useState(() => Math.floor(Date.now() / 1000));
  const days = Number(search.since);
  const query: AuditQuery = {
    ...(search.user ? { user: search.user } : {}),
    ...(search.action ? { action: search.action } : {}),
    ...(search.target ? { target: search.target } : {}),
    ...(days > 0 ? { since: today - days * DAY } : {}),
  };
  const log = useInfiniteQuery(auditQuery(useDeferredValue(query)));
  const entries = log.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Section title={words.title} note={words.note} flush>
      <Filters search={search} />
      {log.error && !log.data && <LoadError error={log.error} onRetry={() => void log.refetch()} />}
      {log.isPending ? <Skeleton lines={6} /> : <Entries entries={entries} />}
      {log.hasNextPage && (
        <div className={styles.bar}>
          <Button onClick={() => void log.fetchNextPage()} disabled={log.isFetchingNextPage}>
            {words.more}
          </Button>
        </div>
      )}
    </Section>
  );
}

function Filters({ search }: { search: Search }) {
  const navigate = useNavigate();
  const users = useQuery(usersQuery);
  const [target, setTarget] = useState(search.target ?? "");
  const choose = (change: Partial<Record<keyof Search, string>>) =>
    void navigate({ to: "/admin/audit", search: { ...search, ...change }, replace: true });
  useEffect(() => {
    setTarget(search.target ?? "");
  }, [search.target]);
  const names = (users.data ?? []).map((user) => ({ value: user.name, label: user.name }));
  const nouns = Object.entries(text.nouns).map(([noun, label]) => ({ value: `${noun}.`, label }));
  return (
    <div className={styles.bar}>
      <Select
        label={words.user}
        value={search.user ?? ""}
        options={[{ value: "", label: words.anyone }, ...names]}
        onChange={(user) => choose({ user })}
      />
      <Select
        label={words.action}
        value={search.action ?? ""}
        options={[{ value: "", label: words.anything }, ...nouns]}
        onChange={(action) => choose({ action })}
      />
      <TextField
        label={words.target}
        placeholder={words.targetHint}
        value={target}
        onChange={(event) => {
          setTarget(event.target.value);
          choose({ target: event.target.value });
        }}
      />
      <Select
        label={words.since}
        value={search.since ?? ""}
        options={[
          { value: "", label: words.always },
          ...PERIODS.map((value) => ({ value, label: words.periods[value] ?? value })),
        ]}
        onChange={(since) => choose({ since })}
      />
    </div>
  );
}

function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <DataTable
      label={words.title}
      columns={[
        { title: words.at, cell: (entry) => <When at={entry.at} /> },
        { title: words.user, cell: (entry) => entry.user || words.nobody },
        { title: words.action, cell: (entry) => <code>{entry.action}</code> },
        { title: words.target, cell: (entry) => entry.target },
        {
          title: words.details,
          cell: (entry) => <span className={styles.faint}>{describeDetails(entry.details)}</span>,
        },
        { title: words.from, cell: (entry) => <span className={styles.faint}>{entry.address}</span> },
      ]}
      rows={entries}
      keyOf={(entry) => entry.id}
      empty={words.none}
    />
  );
}

const describeDetails = (details: AuditEntry["details"]): string =>
  Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(", ") : String(value)}`)
    .join(" · ");
