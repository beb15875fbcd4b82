/** The balance of an account, and what was used: by day, and by model, run or user. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { balanceQuery, entriesQuery, usageQuery } from "#/api/account";
import type { Balance } from "#/api/types";
import { Section } from "#/design/Section";
import { Segmented } from "#/design/Segmented";
import { Select } from "#/design/Select";
import { DataTable } from "#/parts/DataTable";
import { Money, Tokens, When } from "#/parts/Figures";
import { formatCount, formatMoney } from "#/parts/format";
import { Loaded } from "#/parts/Loaded";
import styles from "./forms.module.css";
import { UsageChart } from "./UsageChart";
import { type KeyTotal, sumByDay, sumByKey, type UsageGroup } from "./usage";
import { useAccount } from "./useAccount";
import { text } from "./words";

const words = text.usage;
const route = getRouteApi("/settings/usage");
const PERIODS = ["7", "30", "90"] as const;
const GROUPS = ["model", "run", "user"] as const;
const DAY = 86_400;

export function Usage() {
  const { name, teams } = useAccount();
  const search = route.useSearch();
  const navigate = useNavigate();
  const account = search.account ?? name;
  const choose = (change: Partial<typeof search>) =>
    void navigate({ to: "/settings/usage", search: { ...search, ...change }, replace: true });
  return (
    <>
      <div className={styles.choice}>
        <Select
          label={words.account}
          value={account}
          options={[...new Set([name, ...teams.map((team) => team.team), account])].map((each) => ({
            value: each,
            label: each === name ? words.yours(each) : each,
          }))}
          onChange={(owner) => choose({ account: owner })}
        />
      </div>
      <BalanceSection owner={account} />
      <UsedSection
        owner={account}
        days={search.days ?? "30"}
        group={search.group ?? "model"}
        onDays={(days) => choose({ days })}
        onGroup={(group) => choose({ group })}
      />
      <Movements owner={account} />
    </>
  );
}

function BalanceSection({ owner }: { owner: string }) {
  const balance = useQuery(balanceQuery(owner));
  return (
    <Section title={words.balance}>
      <Loaded query={balance} lines={1}>
        {(found) => <BalanceFigures balance={found} />}
      </Loaded>
    </Section>
  );
}

function BalanceFigures({ balance }: { balance: Balance }) {
  const isLow = balance.available_usd !== null && balance.available_usd <= 0;
  return (
    <div className={styles.figures}>
      <div>
        <div className={styles.faint}>{words.available}</div>
        <div className={styles.figure}>
          {balance.available_usd === null ? words.noLimit : formatMoney(balance.available_usd)}
        </div>
        {balance.available_usd === null && <div className={styles.faint}>{words.noLimitHint}</div>}
        {isLow && <div className={styles.faint}>{words.low}</div>}
      </div>
      <div>
        <div className={styles.faint}>{words.held}</div>
        <div className={styles.figure}>{formatMoney(balance.held_usd)}</div>
      </div>
      <div>
        <div className={styles.faint}>{words.spent}</div>
        <div className={styles.figure}>{formatMoney(balance.spent_usd)}</div>
      </div>
    </div>
  );
}

type UsedProps = {
  owner: string;
  days: (typeof PERIODS)[number];
  group: UsageGroup;
  onDays: (days: (typeof PERIODS)[number]) => void;
  onGroup: (group: UsageGroup) => void;
};

function UsedSection({ owner, days, group, onDays, onGroup }: UsedProps) {
  const count = Number(days);
  const now = new Date();
  const today = Math.floor(now.getTime() / 1000 / DAY) * DAY;
  const usage = useQuery(usageQuery({ owner, by: "day", group, since: today - (count - 1) * DAY }));
  return (
    <Section
      title={words.used}
      actions={
        <>
          <Segmented
            label={words.period}
            value={days}
            options={PERIODS.map((value) => ({ value, label: words.periods[value] ?? value }))}
            onChange={onDays}
          />
          <Segmented
            label={words.group}
            value={group}
            options={GROUPS.map((value) => ({ value, label: words.groups[value] ?? value }))}
            onChange={onGroup}
          />
        </>
      }
    >
      <Loaded query={usage}>
        {(page) =>
          page.items.length === 0 ? (
            <p className={styles.faint}>{words.none}</p>
          ) : (
            <div className={styles.stack}>
              <UsageChart days={sumByDay(page.items, count, now)} />
              {page.next_cursor !== null && <p className={styles.faint}>{words.cut}</p>}
              <Totals totals={sumByKey(page.items, group)} group={group} />
            </div>
          )
        }
      </Loaded>
    </Section>
  );
}

function Totals({ totals, group }: { totals: readonly KeyTotal[]; group: UsageGroup }) {
  return (
    <DataTable
      label={words.totals}
      columns={[
        { title: words.groups[group] ?? group, cell: (total) => <Key total={total} group={group} /> },
        { title: words.requests, isNumber: true, cell: (total) => formatCount(total.requests) },
        { title: words.input, isNumber: true, cell: (total) => <Tokens count={total.input} /> },
        { title: words.output, isNumber: true, cell: (total) => <Tokens count={total.output} /> },
        { title: words.cost, isNumber: true, cell: (total) => <Money usd={total.cost} /> },
      ]}
      rows={totals}
      keyOf={(total) => total.key}
      empty={null}
    />
  );
}

function Key({ total, group }: { total: KeyTotal; group: UsageGroup }) {
  if (group !== "run") return total.key;
  if (total.key === "") return <span className={styles.faint}>{words.noRun}</span>;
  return (
    <Link to="/runs/$runId" params={{ runId: total.key }}>
      {total.key}
    </Link>
  );
}

function Movements({ owner }: { owner: string }) {
  const entries = useQuery(entriesQuery(owner));
  return (
    <Section title={words.movements} flush>
      <Loaded query={entries}>
        {(found) => (
          <DataTable
            label={words.movements}
            columns={[
              { title: words.at, cell: (entry) => <When at={entry.at} /> },
              { title: words.kind, cell: (entry) => words.kinds[entry.kind] },
              { title: words.amount, isNumber: true, cell: (entry) => <Money usd={entry.amount_usd} /> },
              {
                title: words.run,
                cell: (entry) =>
                  entry.run && (
                    <Link to="/runs/$runId" params={{ runId: entry.run }}>
                      {entry.run}
                    </Link>
                  ),
              },
              { title: words.comment, cell: (entry) => entry.note },
            ]}
            rows={found}
            keyOf={(entry) => entry.id}
            empty={words.noMovements}
          />
        )}
      </Loaded>
    </Section>
  );
}
