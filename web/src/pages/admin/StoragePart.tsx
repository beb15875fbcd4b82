/** What the server stores: by kind, by user, and what is left on its disk. */
import { useQuery } from "@tanstack/react-query";
import { storageQuery } from "#/api/admin";
import type { Storage } from "#/api/types";
import { Facts } from "#/design/Facts";
import { Section } from "#/design/Section";
import { DataTable } from "#/parts/DataTable";
import { formatBytes, formatPercent } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import { text } from "./words";

const words = text.storage;

export function StoragePart() {
  const storage = useQuery(storageQuery);
  return <Loaded query={storage}>{(found) => <Parts storage={found} />}</Loaded>;
}

function Parts({ storage }: { storage: Storage }) {
  const total = storage.kinds.reduce((sum, kind) => sum + kind.bytes, 0);
  return (
    <>
      <Section title={words.kinds} flush>
        <DataTable
          label={words.kinds}
          columns={[
            { title: words.kind, cell: (kind) => words.names[kind.kind] },
            { title: words.count, isNumber: true, cell: (kind) => words.counts[kind.kind]?.(kind.count) },
            { title: words.size, isNumber: true, cell: (kind) => formatBytes(kind.bytes) },
            {
              title: words.share,
              isNumber: true,
              cell: (kind) => formatPercent(total === 0 ? 0 : kind.bytes / total),
            },
          ]}
          rows={storage.kinds}
          keyOf={(kind) => kind.kind}
          empty={null}
        />
      </Section>
      <Section title={words.disk}>
        <Facts
          facts={[
            {
              name: words.free,
              value: `${formatBytes(storage.disk_free_bytes)} ${words.of(formatBytes(storage.disk_bytes))}`,
            },
            {
              name: words.database,
              value: storage.database_bytes === null ? words.elsewhere : formatBytes(storage.database_bytes),
            },
          ]}
        />
      </Section>
      <Section title={words.users} note={words.quota(formatBytes(storage.quota_bytes))} flush>
        <DataTable
          label={words.users}
          columns={[
            { title: words.user, cell: (user) => user.user },
            { title: words.size, isNumber: true, cell: (user) => formatBytes(user.bytes) },
          ]}
          rows={storage.users}
          keyOf={(user) => user.user}
          empty={words.noUsers}
        />
      </Section>
    </>
  );
}
