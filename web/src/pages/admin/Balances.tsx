/** What each user and team has to spend; an admin adds to it. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { BALANCE_KEY } from "#/api/account";
import { balancesQuery } from "#/api/admin";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import type { Balance } from "#/api/types";
import { Button, buttonClass } from "#/design/Button";
import { Section } from "#/design/Section";
import { TextField } from "#/design/TextField";
import { DataTable } from "#/parts/DataTable";
import { Money } from "#/parts/Figures";
import { FormDialog } from "#/parts/FormDialog";
import { Loaded } from "#/parts/Loaded";
import styles from "../settings/forms.module.css";
import { text } from "./words";

const words = text.balances;

export function Balances() {
  const balances = useQuery(balancesQuery);
  const [granted, setGranted] = useState<Balance | null>(null);
  return (
    <Section title={words.title} flush>
      <Loaded query={balances}>
        {(found) => (
          <DataTable
            label={words.title}
            columns={[
              { title: words.account, cell: (each) => <span className={styles.name}>{each.owner}</span> },
              {
                title: words.available,
                isNumber: true,
                cell: (each) =>
                  each.available_usd === null ? words.noLimit : <Money usd={each.available_usd} />,
              },
              { title: words.held, isNumber: true, cell: (each) => <Money usd={each.held_usd} /> },
              { title: words.spent, isNumber: true, cell: (each) => <Money usd={each.spent_usd} /> },
              {
                title: text.actions,
                isActions: true,
                cell: (each) => (
                  <>
                    <Link
                      to="/settings/usage"
                      search={{ account: each.owner }}
                      className={buttonClass("plain", true)}
                      aria-label={words.usageOf(each.owner)}
                    >
                      {words.usage}
                    </Link>
                    <Button small aria-label={words.grantTo(each.owner)} onClick={() => setGranted(each)}>
                      {words.grant}
                    </Button>
                  </>
                ),
              },
            ]}
            rows={found}
            keyOf={(each) => each.owner}
            empty={null}
          />
        )}
      </Loaded>
      {granted && <GrantDialog account={granted} onClose={() => setGranted(null)} />}
    </Section>
  );
}

function GrantDialog({ account, onClose }: { account: Balance; onClose: () => void }) {
  const [amount, setAmount] = useState("");
  const [note, setNote] = useState("");
  const grant = useChange({
    send: (_, key) =>
      read(
        api.POST("/api/v1/grants", {
          body: { owner: account.owner, amount_usd: Number(amount), note },
          params: { header: { "Idempotency-Key": key } },
        }),
      ),
    refresh: [BALANCE_KEY],
    onDone: onClose,
  });
  return (
    <FormDialog
      title={words.grantTo(account.owner)}
      onClose={onClose}
      action={words.grant}
      onSubmit={() => grant.submit()}
      isBusy={grant.isBusy}
      error={grant.error}
      fields={["amount_usd", "note"]}
    >
      {account.balance_usd === null && <p>{words.limits}</p>}
      <TextField
        label={words.amount}
        hint={words.amountHint}
        type="number"
        step="any"
        required
        value={amount}
        error={grant.problems.amount_usd}
        onChange={(event) => setAmount(event.target.value)}
      />
      <TextField
        label={words.comment}
        hint={words.commentHint}
        maxLength={1000}
        value={note}
        error={grant.problems.note}
        onChange={(event) => setNote(event.target.value)}
      />
    </FormDialog>
  );
}
