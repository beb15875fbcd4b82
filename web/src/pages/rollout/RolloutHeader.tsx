/** The heading of a rollout: its task, how it ended, what it took, and the way to its neighbours. */
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { type RolloutAddress, siblingsQuery, writeAddress } from "#/api/rollouts";
import { runQuery } from "#/api/runs";
import type { RolloutView } from "#/api/types";
import { Badge } from "#/design/Badge";
import { Button, IconButton } from "#/design/Button";
import { CopyButton } from "#/design/CopyButton";
import { Menu, MenuItem } from "#/design/Menu";
import { PageHeader } from "#/design/Section";
import { showControls } from "#/parts/ansiText";
import { When } from "#/parts/Figures";
import { formatCompact, formatCount, formatDuration, formatMoney, formatScore } from "#/parts/format";
import { OutcomeBadge } from "#/parts/Outcome";
import { words } from "#/words";
import { RawRow } from "./RawRow";
import styles from "./RolloutHeader.module.css";
import { useRolloutNavigation } from "./useRolloutNavigation";

type Props = { address: RolloutAddress; view: RolloutView };

export function RolloutHeader({ address, view }: Props) {
  const { entry } = view;
  const run = useQuery(runQuery(address.runId));
  const [isRawOpen, setRawOpen] = useState(false);
  const name = run.data ? run.data.name || run.data.environment : address.runId;
  return (
    <>
      <PageHeader
        above={
          <Link to="/runs/$runId" params={{ runId: address.runId }}>
            {showControls(name)}
          </Link>
        }
        title={
          <>
            <span className={styles.task} title={String(entry.task)}>
              {showControls(words.rollout.task(String(entry.task)))}
            </span>
            <span className={styles.number}>{words.rollout.number(entry.number)}</span>
            <OutcomeBadge outcome={entry.outcome} />
            {entry.reward !== null && (
              <span className={styles.reward} title={words.rollout.reward}>
                {formatScore(entry.reward)}
              </span>
            )}
          </>
        }
        below={<HeaderFacts view={view} />}
        actions={
          <>
            <NeighbourButtons view={view} />
            <CompareMenu address={address} />
            <Button small className={styles.wide} onClick={() => setRawOpen(true)}>
              {words.rollout.rawRow}
            </Button>
            <CopyButton text={() => location.href} label={words.copyLink} />
          </>
        }
      />
      {isRawOpen && <RawRow address={address} onClose={() => setRawOpen(false)} />}
    </>
  );
}

function HeaderFacts({ view: { entry } }: { view: RolloutView }) {
  return (
    <>
      {entry.turns > 0 && <span>{words.rollout.turns(entry.turns)}</span>}
      {entry.input_tokens + entry.output_tokens > 0 && (
        <span>
          {words.rollout.tokens(formatCompact(entry.input_tokens), formatCompact(entry.output_tokens))}
        </span>
      )}
      {entry.cost_usd !== null && <span>{formatMoney(entry.cost_usd)}</span>}
      {entry.seconds > 0 && <span>{formatDuration(entry.seconds)}</span>}
      {entry.started_at > 0 && <When at={entry.started_at} />}
      {entry.attempts > 1 && (
        <Badge tone="warn" icon="alert">
          {words.rollout.attempts(entry.attempts)}
        </Badge>
      )}
    </>
  );
}

function NeighbourButtons({ view: { neighbours } }: { view: RolloutView }) {
  const { toNeighbour } = useRolloutNavigation();
  const { previous_rollout: previous, next_rollout: next } = neighbours;
  return (
    <div className={styles.neighbours}>
      <IconButton
        label={`${words.rollout.keys.previousRollout} ([)`}
        icon="arrowLeft"
        disabled={previous === null}
        onClick={() => toNeighbour(previous)}
      />
      {neighbours.total > 0 && (
        <span className={styles.place} title={words.rollout.placeTitle}>
          {words.rollout.placeOf(formatCount(neighbours.place + 1), formatCount(neighbours.total))}
        </span>
      )}
      <IconButton
        label={`${words.rollout.keys.nextRollout} (])`}
        icon="arrowRight"
        disabled={next === null}
        onClick={() => toNeighbour(next)}
      />
    </div>
  );
}

/** The other rollouts of the same task, each a click from both traces side by side. */
function CompareMenu({ address }: { address: RolloutAddress }) {
  const siblings = useQuery(siblingsQuery(address));
  const navigate = useNavigate();
  const others = (siblings.data ?? []).filter((each) => each.number !== address.number);
  if (others.length === 0) return null;
  const open = (number: number) =>
    void navigate({
      to: "/diff",
      search: { a: writeAddress(address), b: writeAddress({ ...address, number }) },
    });
  return (
    <Menu
      trigger={
        <Button small icon="compare">
          {words.rollout.compareWith}
        </Button>
      }
    >
      {others.map((other) => (
        <MenuItem key={other.number} onSelect={() => open(other.number)}>
          {words.rollout.compareRollout(other.number, formatScore(other.reward))}
        </MenuItem>
      ))}
    </Menu>
  );
}
