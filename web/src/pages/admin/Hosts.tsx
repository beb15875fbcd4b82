/** The machines that play runs, what each plays now, and what waits for them. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { hostsQuery, queueQuery, WORK_KEY } from "#/api/admin";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import type { HostInfo } from "#/api/types";
import { usePolling } from "#/app/feed";
import { Mark } from "#/design/Badge";
import { Button } from "#/design/Button";
import { Section } from "#/design/Section";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { DataTable } from "#/parts/DataTable";
import { When } from "#/parts/Figures";
import { formatCount } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import styles from "../settings/forms.module.css";
import { text } from "./words";

const words = text.hosts;
const CONTACT_MS = 30_000;

export function Hosts() {
  return (
    <>
      <HostSection />
      <QueueSection />
    </>
  );
}

/** Runs come by the feed; that a host falls silent is no event, so its last contact is asked for now and then. */
function HostSection() {
  const hosts = useQuery({ ...hostsQuery, refetchInterval: CONTACT_MS });
  const [revoked, setRevoked] = useState<HostInfo | null>(null);
  const revoke = useChange<HostInfo>({
    send: (host) =>
      read(api.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: host.token_id } } })),
    refresh: [WORK_KEY],
    onDone: () => setRevoked(null),
  });
  return (
    <Section title={words.hosts} note={words.hostsNote} flush>
      <Loaded query={hosts}>
        {(found) => (
          <DataTable
            label={words.hosts}
            columns={[
              {
                title: words.name,
                cell: (host) => (
                  <>
                    <span className={styles.name}>{host.name}</span>{" "}
                    {host.is_own && <span className={styles.faint}>({words.own})</span>}
                  </>
                ),
              },
              {
                title: words.lastSeen,
                cell: (host) => (
                  <>
                    <Mark
                      tone={host.is_connected ? "good" : "warn"}
                      icon={host.is_connected ? "checkCircle" : "clock"}
                    >
                      {host.is_connected ? words.connected : words.silent}
                    </Mark>{" "}
                    <span className={styles.faint}>
                      {host.last_used_at === null ? words.never : <When at={host.last_used_at} />}
                    </span>
                  </>
                ),
              },
              { title: words.plays, cell: (host) => <Plays host={host} /> },
              {
                title: text.actions,
                isActions: true,
                cell: (host) => (
                  <Button small aria-label={words.revokeOf(host.name)} onClick={() => setRevoked(host)}>
                    {words.revoke}
                  </Button>
                ),
              },
            ]}
            rows={found}
            keyOf={(host) => host.token_id}
            empty={words.noHosts}
          />
        )}
      </Loaded>
      <ConfirmDialog
        open={revoked !== null}
        onClose={() => {
          revoke.reset();
          setRevoked(null);
        }}
        title={words.revokeTitle(revoked?.name ?? "")}
        action={words.revoke}
        onConfirm={() => revoked && revoke.submit(revoked)}
        isBusy={revoke.isBusy}
        error={revoke.error}
      >
        <p>{words.revokeText}</p>
      </ConfirmDialog>
    </Section>
  );
}

function Plays({ host }: { host: HostInfo }) {
  if (host.runs.length === 0 && host.checks.length === 0)
    return <span className={styles.faint}>{words.nothing}</span>;
  return (
    <ul>
      {host.runs.map((run) => (
        <li key={run.id}>
          <Link to="/runs/$runId" params={{ runId: run.id }}>
            {run.name || run.environment}
          </Link>{" "}
          <span className={styles.faint}>
            {run.owner} · {run.model}
            {run.planned !== null &&
              ` · ${words.progress(formatCount(run.settled), formatCount(run.planned))}`}
          </span>
        </li>
      ))}
      {host.checks.map((version) => (
        <li key={version}>{words.checks(version)}</li>
      ))}
    </ul>
  );
}

function QueueSection() {
  const refetchInterval = usePolling();
  const queue = useQuery({ ...queueQuery, refetchInterval });
  return (
    <Section title={words.queue} flush>
      <Loaded query={queue}>
        {(found) => (
          <DataTable
            label={words.queue}
            columns={[
              {
                title: words.what,
                cell: (item) =>
                  item.kind === "run" ? (
                    <Link to="/runs/$runId" params={{ runId: item.id }}>
                      {item.name || item.environment}
                    </Link>
                  ) : (
                    item.name
                  ),
              },
              { title: words.kind, cell: (item) => words.kinds[item.kind] },
              { title: words.user, cell: (item) => item.user },
              { title: words.model, cell: (item) => item.model },
              { title: words.waits, cell: (item) => <When at={item.since} /> },
              { title: words.why, cell: (item) => item.reason },
            ]}
            rows={found}
            keyOf={(item) => item.id}
            empty={words.empty}
          />
        )}
      </Loaded>
    </Section>
  );
}
