/** The tokens of an account: a new one is shown once. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { loginsQuery, TOKEN_KEY, tokensQuery } from "#/api/account";
import { useChange } from "#/api/change";
import { api, read } from "#/api/client";
import type { Token } from "#/api/types";
import { Badge } from "#/design/Badge";
import { Section } from "#/design/Section";
import { ConfirmDialog } from "#/parts/ConfirmDialog";
import { DataTable } from "#/parts/DataTable";
import { When } from "#/parts/Figures";
import { Loaded } from "#/parts/Loaded";
import { RefusableButton } from "#/parts/RefusableButton";
import { ShownOnce } from "#/parts/ShownOnce";
import styles from "./forms.module.css";
import { NewTokenDialog } from "./NewTokenDialog";
import { useAccount } from "./useAccount";
import { text } from "./words";

const words = text.tokens;

export function Tokens() {
  const { reason, scopes } = useAccount();
  const lacks = reason("tokens:write", words.lacks);
  const [isNew, setNew] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <Section
      title={words.title}
      note={words.note}
      flush
      actions={
        <RefusableButton look="primary" icon="plus" reason={lacks} onClick={() => setNew(true)}>
          {words.create}
        </RefusableButton>
      }
    >
      {lacks ? <p className={styles.note}>{lacks}</p> : <TokenTable />}
      {isNew && (
        <NewTokenDialog
          title={words.create}
          scopes={scopes}
          send={(body, key) =>
            read(api.POST("/api/v1/tokens", { body, params: { header: { "Idempotency-Key": key } } }))
          }
          onClose={() => setNew(false)}
          onCreated={(made) => {
            setNew(false);
            setSecret(made.secret);
          }}
        />
      )}
      {secret !== null && (
        <ShownOnce
          title={words.shown}
          value={secret}
          copy={words.copy}
          done={text.done}
          onClose={() => setSecret(null)}
        >
          {words.shownText}
        </ShownOnce>
      )}
    </Section>
  );
}

function TokenTable() {
  const tokens = useQuery(tokensQuery);
  const logins = useQuery(loginsQuery);
  const [revoked, setRevoked] = useState<Token | null>(null);
  const current = logins.data?.find((login) => login.is_current)?.token_id;
  const nameOf = (token: Token) => token.name || words.unnamed;
  const revoke = useChange<Token>({
    send: (token) =>
      read(api.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id: token.id } } })),
    refresh: [TOKEN_KEY],
    onDone: () => setRevoked(null),
  });
  return (
    <Loaded query={tokens}>
      {(found) => (
        <>
          <DataTable
            label={words.title}
            columns={[
              {
                title: words.name,
                cell: (token) => (
                  <>
                    <span className={styles.name}>{nameOf(token)}</span>{" "}
                    {token.id === current && <Badge tone="accent">{words.thisBrowser}</Badge>}
                  </>
                ),
              },
              {
                title: words.may,
                cell: (token) => (
                  <span className={styles.chips}>
                    {token.scopes.map((scope) => (
                      <span key={scope} className={styles.chip} title={text.scopes[scope]}>
                        {scope}
                      </span>
                    ))}
                  </span>
                ),
              },
              {
                title: words.lastUsed,
                cell: (token) =>
                  token.last_used_at === null ? words.neverUsed : <When at={token.last_used_at} />,
              },
              {
                title: words.expires,
                cell: (token) => (token.expires_at === null ? words.never : <When at={token.expires_at} />),
              },
              {
                title: text.actions,
                isActions: true,
                cell: (token) => (
                  <RefusableButton
                    small
                    reason={null}
                    aria-label={words.revokeOf(nameOf(token))}
                    onClick={() => setRevoked(token)}
                  >
                    {words.revoke}
                  </RefusableButton>
                ),
              },
            ]}
            rows={found}
            keyOf={(token) => token.id}
            empty={words.none}
          />
          <ConfirmDialog
            open={revoked !== null}
            onClose={() => {
              revoke.reset();
              setRevoked(null);
            }}
            title={words.revokeTitle(revoked ? nameOf(revoked) : "")}
            action={words.revoke}
            onConfirm={() => revoked && revoke.submit(revoked)}
            isBusy={revoke.isBusy}
            error={revoke.error}
          >
            <p>{words.revokeText}</p>
            {revoked?.id === current && <p>{words.revokeSelf}</p>}
          </ConfirmDialog>
        </>
      )}
    </Loaded>
  );
}
